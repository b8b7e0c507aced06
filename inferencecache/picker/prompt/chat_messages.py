"""Turns of chat completions."""

from collections.abc import Iterator, Mapping
from typing import Final

from inferencecache.picker.prompt.conversation import NOTHING, Media, Message, Parts

_KEPT: Final = ("name", "tool_calls", "tool_call_id", "reasoning", "reasoning_content", "tools")
_USUAL: Final = frozenset({"role", "content"})
_TEXT_KINDS: Final = ("text", "input_text", "output_text", "refusal", "thinking")
"""Compared one by one: a body may say anything, also what has no place in a set."""


def chat_messages(messages: object) -> tuple[Message, ...] | None:
    """Return the turns of *messages*, or None where they are no turns.

    Args:
        messages: As in the body.
    """
    if not isinstance(messages, list) or not messages:
        return None
    turns = tuple(_turns(messages))
    return turns if len(turns) == len(messages) else None


def content_of(content: object) -> str | Parts:
    """Return the content of a turn: one text, or several parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return tuple(map(text_of, content))
    return "" if content is None else (Media(content),)


def text_of(part: object) -> str | Media:
    """Return the text of one part of a turn, or what it is instead."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in _TEXT_KINDS:
        return Media(part)
    text = part.get("text", part.get("refusal", part.get("thinking")))
    return text if isinstance(text, str) else Media(part)


def _turns(messages: list[object]) -> Iterator[Message]:
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else None
        if isinstance(message, dict) and isinstance(role, str):
            yield Message(
                role=role, content=content_of(message.get("content")), rest=_rest(message)
            )


def _rest(message: Mapping[str, object]) -> Mapping[str, object]:
    if message.keys() <= _USUAL:
        return NOTHING
    return {key: message[key] for key in _KEPT if message.get(key) is not None}
