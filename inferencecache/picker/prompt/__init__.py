"""Prompts as blocks: what the prefix signal compares."""

from inferencecache.picker.prompt.blocks import NoBlocks, PromptBlocks, PromptReader

__all__ = ["NoBlocks", "PromptBlocks", "PromptReader"]
