"""What templates are given is what engines give them."""

from math import inf
from typing import Any

import pytest
from prompt_rig import chat, conversation

from inferencecache.picker.fleet import EngineKind
from inferencecache.picker.prompt.template_input import (
    MEDIA_MARK,
    as_rendered,
    before_media,
    continued,
    template_variables,
)

TOOL = {
    "function": {"parameters": {"type": "object"}, "name": "add", "x": 1},
    "type": "function",
}
PICTURE = {"type": "image_url", "image_url": {"url": "http://picture"}}


def variables(
    body: object, engine: EngineKind = EngineKind.VLLM, *, knows_parts: bool = False
) -> dict[str, Any]:
    """Return the variables for a body."""
    return template_variables(conversation(body), engine, knows_parts=knows_parts)


def test_vllm_writes_every_key_of_a_tool() -> None:
    """Missing ones as null, in its own order, unknown ones behind."""
    (tool,) = variables(chat(("user", "a"), tools=[TOOL]))["tools"]

    assert list(tool) == ["type", "function"]
    assert list(tool["function"].items()) == [
        ("name", "add"),
        ("description", None),
        ("parameters", {"type": "object"}),
        ("x", 1),
    ]


def test_sglang_writes_tools_in_another_order() -> None:
    """And drops what it does not know."""
    (tool,) = variables(chat(("user", "a"), tools=[TOOL]), EngineKind.SGLANG)["tools"]

    assert list(tool["function"].items()) == [
        ("description", None),
        ("name", "add"),
        ("parameters", {"type": "object"}),
        ("strict", False),
    ]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("auto", ["add", "sub"]),
        (None, ["add", "sub"]),
        ("none", None),
        ({"type": "function", "function": {"name": "sub"}}, ["sub"]),
    ],
    ids=str,
)
def test_sglang_shows_only_tools_that_may_be_called(
    choice: object, names: list[str] | None
) -> None:
    """VLLM shows all of them whatever is chosen."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("add", "sub")]
    body = chat(("user", "a"), tools=tools, tool_choice=choice)
    shown = variables(body, EngineKind.SGLANG)["tools"]

    assert (shown and [tool["function"]["name"] for tool in shown]) == names
    assert len(variables(body)["tools"]) == 2


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ("{broken", "{broken"),
        ("\ud800", "\ud800"),
        ('{"a": [1e308, -1e400]}', {"a": [1e308, -inf]}),
    ],
    ids=repr,
)
def test_arguments_of_calls_are_objects(arguments: object, shown: object) -> None:
    """Templates expect them so; what is no object stays as it is."""
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": "x"}}
    body = conversation(
        {"model": "m", "messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    )
    call["function"]["arguments"] = arguments  # type: ignore[index] # as no JSON can carry all of them
    body.messages[0].rest["tool_calls"][0]["function"]["arguments"] = arguments  # type: ignore[index] # the same
    (message,) = template_variables(body, EngineKind.VLLM, knows_parts=False)["messages"]

    assert message["content"] == ""
    assert message["tool_calls"][0]["function"] == {"name": "add", "arguments": shown}


def test_no_calls_are_no_key() -> None:
    """Templates take an empty list for a call."""
    message = {"role": "assistant", "content": "a", "tool_calls": []}

    assert variables({"model": "m", "messages": [message]})["messages"] == [
        {"role": "assistant", "content": "a"}
    ]


def test_parts_become_one_text_where_a_template_knows_none() -> None:
    """One per line, as engines join them; else they stay parts."""
    body = chat(("user", ["a", {"type": "text", "text": "b"}]), ("assistant", "c"))

    assert [turn["content"] for turn in variables(body)["messages"]] == ["a\nb", "c"]
    assert [turn["content"] for turn in variables(body, knows_parts=True)["messages"]] == [
        [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        [{"type": "text", "text": "c"}],
    ]


def test_pictures_are_marked_where_engines_put_them() -> None:
    """Before the turn's text, or at its own place where the template knows parts."""
    turn = [{"type": "text", "text": "a"}, PICTURE, {"type": "text", "text": "b"}]
    body = chat(("user", "x"), ("user", turn), ("user", [PICTURE, "c"]))
    texts = [message["content"] for message in variables(body)["messages"]]
    parts = variables(body, knows_parts=True)["messages"]

    assert texts == ["x", f"{MEDIA_MARK}a\nb", f"{MEDIA_MARK}c"]
    assert [part["text"] for part in parts[1]["content"]] == ["a", MEDIA_MARK, "b"]
    assert [part["text"] for part in parts[2]["content"]] == [MEDIA_MARK, "c"]


def test_what_stands_before_a_picture_is_told_from_what_stands_behind() -> None:
    """And a text without one is whole."""
    assert before_media(f"a{MEDIA_MARK}b{MEDIA_MARK}c") == ("a", "bc")
    assert before_media("ab") == ("ab", None)


def test_clients_cannot_put_their_own_turns_in_place() -> None:
    """Their variables go under those of the request, and stay where there are none."""
    body = chat(
        ("user", "a"),
        chat_template_kwargs={"messages": [], "add_generation_prompt": False, "thinking": True},
        reasoning_effort="low",
    )
    given = variables(body)

    assert given["messages"] == [{"role": "user", "content": "a"}]
    assert given["add_generation_prompt"] is True
    assert (given["thinking"], given["reasoning_effort"]) == (True, "low")


@pytest.mark.parametrize(
    ("last", "written", "kept"),
    [
        ("one, ", "<a>one, </a>", "<a>one, "),
        ("one, ", "<a>one,</a>", "<a>one,"),
        (" one", "<a>one</a>", "<a>one"),
        (" one", "<a> one</a>", "<a> one"),
        ("one", "<u>one</u><a>one</a>", "<u>one</u><a>one"),
        ("one", "<a></a>", None),
        ("", "<a></a>", None),
    ],
)
def test_an_answer_goes_on_behind_the_last_turns_text(
    last: str, written: str, kept: str | None
) -> None:
    """With its blanks, if the template keeps blanks."""
    body = chat(("user", "one"), ("assistant", last), continue_final_message=True)

    assert continued(written, conversation(body)) == kept


def test_sglang_appends_the_turn_that_an_answer_goes_on_with() -> None:
    """Its template writes the head of an answer, whatever the body says of it."""
    body = chat(("user", "count"), ("assistant", ["one", "two"]), continue_final_message=True)
    whole = conversation(body)
    rendered, appended = as_rendered(whole, EngineKind.SGLANG)

    assert (len(rendered.messages), appended) == (1, "one\ntwo")
    assert (rendered.adds_generation_prompt, rendered.continues_final_message) == (True, False)
    assert as_rendered(whole, EngineKind.VLLM) == (whole, "")


def test_sglang_goes_on_with_nobody_elses_turn() -> None:
    """Only an assistant's; and it has no switch for the head of an answer."""
    body = chat(("user", "count"), continue_final_message=True, add_generation_prompt=False)
    rendered, appended = as_rendered(conversation(body), EngineKind.SGLANG)

    assert (len(rendered.messages), appended) == (1, "")
    assert rendered.adds_generation_prompt
