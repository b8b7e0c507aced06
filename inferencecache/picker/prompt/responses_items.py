"""Turns of the Responses API, as those of chat completions."""

from collections.abc import Iterator

from inferencecache.picker.prompt.chat_messages import content_of
from inferencecache.picker.prompt.conversation import Message


def responses_messages(instructions: object, items: object) -> tuple[Message, ...] | None:
    """Return the turns of a body, or None where there are none.

    Args:
        instructions: What stands before all turns.
        items: Its ``input``: a text, or a list of items.
    """
    turns: list[Message] = []
    if isinstance(instructions, str) and instructions:
        turns.append(Message(role="system", content=instructions))
    if isinstance(items, str):
        return (*turns, Message(role="user", content=items))
    if not isinstance(items, list) or not items:
        return None
    for item in items:
        if not isinstance(item, dict):
            return None
        turns.extend(_turns(item))
    return tuple(turns)


def responses_tools(tools: list[object]) -> list[object]:
    """Return the functions among *tools* as chat completions write them."""
    return [
        {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}
        for tool in tools
        if isinstance(tool, dict) and tool.get("type") == "function" and "function" not in tool
    ]


def _turns(item: dict[str, object]) -> Iterator[Message]:
    kind = item.get("type", "message")
    if kind == "function_call":
        called = {"name": item.get("name"), "arguments": item.get("arguments", "")}
        calls = [{"id": item.get("call_id"), "type": "function", "function": called}]
        yield Message(role="assistant", content="", rest={"tool_calls": calls})
    elif kind == "function_call_output":
        rest = {"tool_call_id": item.get("call_id", "")}
        yield Message(role="tool", content=content_of(item.get("output")), rest=rest)
    elif kind != "reasoning":
        role = item.get("role")
        yield Message(
            role=role if isinstance(role, str) else "user", content=content_of(item.get("content"))
        )
