"""How long prompts are believed to be whose tokens nobody counts, and how much of them is warm."""

import json
from pathlib import Path

import pytest
from fleets import tokens_of
from picker_texts import worker_set
from served_fleet import serve_fleet

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.picker_choice import PickerChoiceSettings

BLIND = worker_set("{models: [{name: m}], endpoints: [{name: a, address: '10.0.0.1:8000'}]}")
NARROW = worker_set(
    "{models: [{name: m, contextWindow: 1000}], endpoints: [{name: a, address: '10.0.0.1:8000'}]}"
)
RUSSIAN = "кэш знает начало " * 100
WORDS = "These words are a text, and every one of them is read. " * 64
BASE64 = "QmFzZTY0" * 500


async def warm_share(
    tmp_path: Path, body: dict[str, object], bytes_per_token: int = 4, *, is_ascii: bool = True
) -> tuple[int, int]:
    """Return how much of a prompt is warm where it has just been, and how long it is."""
    data = json.dumps({"model": "m", **body}, ensure_ascii=is_ascii).encode()
    choice = PickerChoiceSettings(bytes_per_token=bytes_per_token)
    async with serve_fleet(tmp_path, BLIND, picker_choice=choice) as served:
        await served.pick(data, tenant="t")
        again = await served.pick(data, tenant="t")
    matched, _, length = tokens_of(again.reason)["matched"].partition("/")
    return int(matched), int(length)


def turn(content: object, role: str = "user") -> dict[str, object]:
    """Return a turn of a chat."""
    return {"role": role, "content": content}


@pytest.mark.parametrize(("bytes_per_token", "length"), [(2, 2_560), (4, 1_280), (8, 640)])
async def test_characters_are_as_many_tokens_as_prompts_are_believed_to_have(
    tmp_path: Path, bytes_per_token: int, length: int
) -> None:
    """All of a prompt but its last token, whatever a token is believed to be."""
    body: dict[str, object] = {"prompt": "a warm prefix. 1" * 320}
    assert await warm_share(tmp_path, body, bytes_per_token) == (length - 1, length)


@pytest.mark.parametrize("bytes_per_token", [2, 4, 8])
async def test_token_ids_are_counted_where_only_characters_are_compared(
    tmp_path: Path, bytes_per_token: int
) -> None:
    """Whatever a token of a text is believed to be."""
    body: dict[str, object] = {"prompt": list(range(5_000))}
    assert await warm_share(tmp_path, body, bytes_per_token) == (78 * 64, 5_000)


@pytest.mark.parametrize("is_ascii", [True, False])
async def test_escaped_letters_are_as_long_as_others(tmp_path: Path, *, is_ascii: bool) -> None:
    """3,100 bytes in UTF-8, of which 12 blocks of 256 are whole; 9,200 as ASCII."""
    body: dict[str, object] = {"prompt": RUSSIAN}
    assert await warm_share(tmp_path, body, is_ascii=is_ascii) == (12 * 64, 775)


@pytest.mark.parametrize("is_ascii", [True, False])
async def test_escaped_letters_keep_nobody_from_a_window(tmp_path: Path, *, is_ascii: bool) -> None:
    """Which holds 1,000 tokens: 3,100 bytes fit, and 9,200 would not."""
    data = json.dumps({"model": "m", "prompt": RUSSIAN}, ensure_ascii=is_ascii).encode()
    async with serve_fleet(tmp_path, NARROW) as served:
        answer = await served.pick(data, tenant="t")
    assert answer.outcome == pb.PickResponse.OK, answer.reason


@pytest.mark.parametrize(
    "messages",
    [
        [turn("A picture starts with data:image/png;base64,AA. " + WORDS)],
        [turn("data:image/png;base64," + BASE64)],
        [
            turn("Look at it."),
            turn(
                [{"type": "tool_use", "id": "1", "name": "f", "input": {"data": BASE64}}],
                "assistant",
            ),
            turn([{"type": "tool_result", "tool_use_id": "1", "content": "ok"}]),
        ],
        [
            turn([{"type": "image_url", "image_url": {"url": "data:x;base64," + BASE64}}]),
            turn(WORDS),
        ],
    ],
    ids=["quoted", "whole-text", "tool", "picture"],
)
async def test_no_match_is_longer_than_its_prompt(tmp_path: Path, messages: list[object]) -> None:
    """Nor by more than a block shorter where all of it is warm."""
    matched, length = await warm_share(tmp_path, {"messages": messages})
    assert length - 64 <= matched < length
    assert length > 800
