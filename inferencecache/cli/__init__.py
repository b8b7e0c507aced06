"""The ``inferencecache`` command: arguments to settings to a run, one module per command."""

from inferencecache.cli.program import main

__all__ = ["main"]
