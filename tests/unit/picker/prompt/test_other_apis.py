"""Anthropic messages and responses are the turns that engines make of them."""

import pytest
from prompt_rig import conversation

from inferencecache.picker.prompt.conversation import Media, Message


def test_anthropic_messages_become_turns() -> None:
    """System first; calls and results of tools as chat completions have them."""
    picture = {"type": "image", "source": {"type": "base64", "data": "AAAA"}}
    found = conversation(
        {
            "model": "m",
            "system": [{"type": "text", "text": "be "}, {"type": "text", "text": "brief"}],
            "tools": [{"name": "add", "description": "d", "input_schema": {"type": "object"}}],
            "messages": [
                {"role": "user", "content": "1 + 1?"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "text", "text": "I add"},
                        {"type": "tool_use", "id": "t", "name": "add", "input": {"a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": "2"},
                        {"type": "text", "text": "and this?"},
                        picture,
                    ],
                },
            ],
        }
    )
    call = {"id": "t", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}

    assert found.messages == (
        Message(role="system", content="be brief"),
        Message(role="user", content="1 + 1?"),
        Message(role="assistant", content="I add", rest={"tool_calls": [call]}),
        Message(role="tool", content="2", rest={"tool_call_id": "t"}),
        Message(role="user", content=("and this?", Media(picture))),
    )
    described = {"name": "add", "description": "d", "parameters": {"type": "object"}}
    assert found.tools == ({"type": "function", "function": described},)
    assert found.first_media == 4


def test_responses_become_turns() -> None:
    """Instructions first; what the model thought is not sent again."""
    found = conversation(
        {
            "model": "m",
            "instructions": "be brief",
            "tools": [{"type": "function", "name": "add"}, {"type": "web_search"}],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "1 + 1?"}]},
                {"type": "reasoning", "summary": []},
                {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c", "output": "2"},
                {"type": "message", "role": "assistant", "content": "two"},
            ],
        }
    )
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}

    assert found.messages == (
        Message(role="system", content="be brief"),
        Message(role="user", content=("1 + 1?",)),
        Message(role="assistant", content="", rest={"tool_calls": [call]}),
        Message(role="tool", content="2", rest={"tool_call_id": "c"}),
        Message(role="assistant", content="two"),
    )
    assert found.tools == ({"type": "function", "function": {"name": "add"}},)


def test_a_text_as_input_is_one_turn() -> None:
    """With its instructions before it."""
    found = conversation({"model": "m", "input": "hello", "instructions": "be brief"})

    assert [turn.content for turn in found.messages] == ["be brief", "hello"]


@pytest.mark.parametrize("kind", [[], {}, None, 1, True, "image"], ids=str)
@pytest.mark.parametrize("further", [{}, {"system": "s"}], ids=["chat", "anthropic"])
def test_parts_of_any_kind_are_media(kind: object, further: dict[str, object]) -> None:
    """A kind that is no text, or none that anybody knows, is nothing to compare."""
    part = {"type": kind, "text": "a"}
    body = {"model": "m", "messages": [{"role": "user", "content": [part]}], **further}

    assert conversation(body).messages[-1].content == (Media(part),)
