"""What a chat template is given, as the engines give it.

Engines do not hand a body's turns and tools on as they are: arguments of calls become objects,
tools get every key of their type, and a turn of several parts becomes one text where the template
knows no parts. A template that writes tools as JSON shows all of that.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt.conversation import NOTHING, Conversation, Message
from inferencecache.picker.request.envelope import read_float

MEDIA_MARK: Final = "\ue000 inferencecache: media \ue001"
"""Stands where a picture does; what the template writes before the first is what counts."""

_ARGUMENTS: Final = msgspec.json.Decoder(float_hook=read_float)


def template_variables(
    conversation: Conversation, engine: EngineKind, *, knows_parts: bool
) -> dict[str, Any]:
    """Return the variables of a template.

    Args:
        conversation: The prompt.
        engine: Who renders it.
        knows_parts: Whether the template goes through the parts of a turn itself.
    """
    return {
        **conversation.variables,
        "messages": [
            _message(message, knows_parts=knows_parts) for message in conversation.messages
        ],
        "tools": _tools(conversation, engine),
        "add_generation_prompt": conversation.adds_generation_prompt,
    }


def as_rendered(conversation: Conversation, engine: EngineKind) -> tuple[Conversation, str]:
    """Return what an engine has its template write, and what it appends to that.

    SGLang always writes an answer's head, and goes on with the last turn by appending its text.
    """
    if engine is not EngineKind.SGLANG:
        return conversation, ""
    last = conversation.messages[-1]
    with_head = replace(conversation, adds_generation_prompt=True, continues_final_message=False)
    if not conversation.continues_final_message or last.role != "assistant" or last.has_media:
        return with_head, ""
    text = "\n".join(part for part in last.parts if isinstance(part, str))
    return replace(with_head, messages=conversation.messages[:-1]), text


def before_media(text: str) -> tuple[str, str | None]:
    """Return what stands before the first picture, and behind it; None where there is none.

    Any picture may be the first that a template writes: it may leave out the turn of another.
    """
    before, mark, behind = text.partition(MEDIA_MARK)
    return before, behind.replace(MEDIA_MARK, "") if mark else None


def continued(text: str, conversation: Conversation) -> str | None:
    """Return *text* up to the end of the last turn's own text; None if that is not in it.

    A template that keeps the blanks around a turn's text keeps those behind it, too.
    """
    texts = [part for part in conversation.messages[-1].parts if isinstance(part, str)]
    last = texts[-1] if texts else ""
    start = text.rfind(last.strip())
    if start < 0 or not last.strip():
        return None
    kept = last.lstrip()
    return text[: start + len(kept if text.startswith(kept, start) else last.strip())]


def _message(message: Message, *, knows_parts: bool) -> dict[str, Any]:
    content = _parts(message) if knows_parts else _text(message)
    if message.rest is NOTHING:  # as most of hundreds
        return {"role": message.role, "content": content}
    written = {"role": message.role, "content": content, **message.rest}
    calls = written.pop("tool_calls", None)
    if isinstance(calls, list) and calls:
        written["tool_calls"] = [_call(call) for call in calls]
    return written


def _text(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    text = "\n".join(part for part in message.content if isinstance(part, str))
    # Engines put what stands for pictures before the text.
    return MEDIA_MARK + text if message.has_media else text


def _parts(message: Message) -> list[dict[str, str]]:
    return [
        {"type": "text", "text": part if isinstance(part, str) else MEDIA_MARK}
        for part in message.parts
    ]


def _call(call: object) -> object:
    """Return a call of a tool with its arguments as an object, if they are one."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        return call
    return {**call, "function": {**function, "arguments": _arguments(function.get("arguments"))}}


def _arguments(arguments: object) -> object:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return _ARGUMENTS.decode(arguments) if arguments else {}
    except (msgspec.MsgspecError, UnicodeError):
        return arguments


def _tools(conversation: Conversation, engine: EngineKind) -> list[object] | None:
    tools = conversation.tools
    if tools is None or (engine is EngineKind.SGLANG and conversation.tool_choice == "none"):
        return None
    shape = _sglang_function if engine is EngineKind.SGLANG else _vllm_function
    chosen = _chosen(conversation.tool_choice) if engine is EngineKind.SGLANG else None
    written = [_tool(tool, shape) for tool in tools if isinstance(tool, dict)]
    return [tool for tool in written if chosen in (None, _name(tool))]


def _tool(tool: Mapping[str, Any], shape: Any) -> dict[str, Any]:  # noqa: ANN401 - a function
    function = tool.get("function")
    written = {"type": tool.get("type", "function")}
    return {**written, "function": shape(function) if isinstance(function, dict) else function}


def _vllm_function(function: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: function.get(key) for key in ("name", "description", "parameters")}
    return {**known, **{key: function[key] for key in function if key not in known}}


def _sglang_function(function: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: function.get(key) for key in ("description", "name", "parameters")}
    return {**known, "strict": bool(function.get("strict", False))}


def _chosen(tool_choice: object) -> object:
    """Return the name of the one tool that has to be called, None for any."""
    function = tool_choice.get("function") if isinstance(tool_choice, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _name(tool: Mapping[str, Any]) -> object:
    function = tool.get("function")
    return function.get("name") if isinstance(function, dict) else None
