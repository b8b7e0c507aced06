"""Turns of Anthropic messages, as engines rewrite them into those of chat completions."""

from collections.abc import Iterator
from typing import Final

import msgspec

from inferencecache.picker.prompt.chat_messages import content_of, text_of
from inferencecache.picker.prompt.conversation import Media, Message

_THOUGHTS: Final = ("thinking", "redacted_thinking")


def anthropic_messages(system: object, messages: object) -> tuple[Message, ...] | None:
    """Return the turns of a body, or None where there are none.

    Args:
        system: What stands before all turns: a text, or a list of parts.
        messages: As in the body.
    """
    if not isinstance(messages, list) or not messages:
        return None
    turns = list(_system(system))
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return None
        turns.extend(_turns(message["role"], message.get("content")))
    return tuple(turns)


def anthropic_tools(tools: list[object]) -> list[object]:
    """Return *tools* as chat completions write them."""
    return [_tool(tool) if isinstance(tool, dict) else tool for tool in tools]


def _tool(tool: dict[str, object]) -> dict[str, object]:
    described = {
        "name": tool.get("name"),
        "description": tool.get("description"),
        "parameters": tool.get("input_schema"),
    }
    return {"type": "function", "function": described}


def _system(system: object) -> Iterator[Message]:
    if isinstance(system, list):
        system = "".join(text for text in map(text_of, system) if isinstance(text, str))
    if isinstance(system, str) and system:
        yield Message(role="system", content=system)


def _turns(role: str, content: object) -> Iterator[Message]:
    """Yield what one turn becomes: results of tools are turns of their own, before the rest."""
    if not isinstance(content, list):
        yield Message(role=role, content=content_of(content))
        return
    parts: list[str | Media] = []
    calls: list[object] = []
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, dict) and kind == "tool_result":
            yield _result(part)
        elif isinstance(part, dict) and kind == "tool_use":
            calls.append(_call(part))
        elif kind not in _THOUGHTS:
            parts.append(text_of(part))
    if parts or calls:
        rest = {"tool_calls": calls} if calls else {}
        one = parts[0] if len(parts) == 1 else None
        yield Message(role=role, content=one if isinstance(one, str) else tuple(parts), rest=rest)


def _result(part: dict[str, object]) -> Message:
    rest = {"tool_call_id": part.get("tool_use_id", "")}
    return Message(role="tool", content=content_of(part.get("content")), rest=rest)


def _call(part: dict[str, object]) -> dict[str, object]:
    arguments = msgspec.json.encode(part.get("input") or {}).decode()
    called = {"name": part.get("name"), "arguments": arguments}
    return {"id": part.get("id"), "type": "function", "function": called}
