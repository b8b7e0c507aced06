"""What is read of an answer that passes by: usage of every API, the model, the chunks."""

import json
import tracemalloc
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from work_counter import lines_run

from inferencecache.gateway import AnswerFacts, AnswerScan

STREAM, DOCUMENT = "text/event-stream; charset=utf-8", "application/json"


def events(*datas: object) -> bytes:
    """Return a stream of data lines without names."""
    texts = [data if isinstance(data, str) else json.dumps(data) for data in datas]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def named(*datas: dict[str, object]) -> bytes:
    """Return a stream of events that are named by their type."""
    return "".join(
        f"event: {data['type']}\ndata: {json.dumps(data)}\n\n" for data in datas
    ).encode()


def chunk(text: str) -> dict[str, object]:
    """Return a chunk of a chat answer."""
    return {"model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}


def facts(model: str, prompt: int, completion: int, cached: int | None) -> AnswerFacts:
    """Return what an answer says."""
    return AnswerFacts(
        model=model, prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached
    )


CHAT = events(
    chunk("a"),
    chunk('"usage": {"prompt_tokens": 99}'),
    {
        "model": "m",
        "choices": [],
        "usage": {
            "prompt_tokens": 9,
            "completion_tokens": 2,
            "prompt_tokens_details": {"cached_tokens": 4},
        },
    },
    "[DONE]",
)
MESSAGES = named(
    {
        "type": "message_start",
        "message": {
            "model": "claude",
            "usage": {
                "input_tokens": 5,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 20,
                "output_tokens": 1,
            },
        },
    },
    {"type": "ping"},
    {"type": "content_block_start", "index": 0},
    {"type": "content_block_delta", "delta": {"text": "a"}},
    {"type": "content_block_delta", "delta": {"text": "b"}},
    {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
    {"type": "message_stop"},
)
RESPONSES = named(
    {"type": "response.created", "response": {"model": "r", "usage": None}},
    {"type": "response.output_text.delta", "delta": "a"},
    {"type": "response.output_text.delta", "delta": "b"},
    {"type": "response.output_text.delta", "delta": "c"},
    {
        "type": "response.completed",
        "response": {
            "model": "r",
            "usage": {
                "input_tokens": 30,
                "output_tokens": 3,
                "input_tokens_details": {"cached_tokens": 16},
            },
        },
    },
)
EXPECTED = {
    "chat": (CHAT, facts("m", 9, 2, 4), 2),
    "messages": (MESSAGES, facts("claude", 125, 7, 100), 2),
    "responses": (RESPONSES, facts("r", 30, 3, 16), 3),
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_streams_are_read_however_they_are_cut(name: str, size: int, ending: bytes) -> None:
    """Facts and chunks are the same; a text that looks like usage is none."""
    stream, expected, chunks = EXPECTED[name]
    stream = stream.replace(b"\n", ending)
    scan = AnswerScan(STREAM, 4_096)
    for start in range(0, len(stream), size):
        scan.feed(stream[start : start + size])
    assert scan.finish() == expected
    assert scan.chunks == chunks


def test_usage_in_every_chunk_takes_no_chunk_away() -> None:
    """Engines can be asked for it; the last one counts."""
    scan = AnswerScan(STREAM, 4_096)
    for done in (1, 2, 3):
        usage = {"prompt_tokens": 9, "completion_tokens": done}
        scan.feed(events({**chunk("a"), "usage": usage}))
    assert scan.finish() == facts("m", 9, 3, None)
    assert scan.chunks == 3


def test_a_stream_may_end_without_its_last_newline() -> None:
    """What it said last counts all the same."""
    scan = AnswerScan(STREAM, 4_096)
    scan.feed(CHAT.partition(b"\n\ndata: [DONE]")[0])
    assert scan.finish() == facts("m", 9, 2, 4)


def test_a_line_that_is_too_long_is_passed_over_and_counts_as_a_chunk() -> None:
    """What follows it is read as ever."""
    scan = AnswerScan(STREAM, 1_024)
    long = events(chunk("x" * 5_000))
    for start in range(0, len(long), 100):
        scan.feed(long[start : start + 100])
    scan.feed(CHAT)
    assert scan.finish() == facts("m", 9, 2, 4)
    assert scan.chunks == 3


def test_a_document_is_read_at_its_end() -> None:
    """Whole, if it is not too long."""
    body = json.dumps({"model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2}})
    scan = AnswerScan(DOCUMENT, 4_096)
    for byte in body.encode():
        scan.feed(bytes([byte]))
    assert scan.finish() == facts("m", 1, 2, None)


def test_of_a_long_document_the_usage_at_its_end_is_found() -> None:
    """A text that looks like it, further in front, is none; the model is not known."""
    body = json.dumps(
        {
            "model": "m",
            "choices": [{"text": "x" * 50_000 + '"usage": {"prompt_tokens": 99}'}],
            "usage": {"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 0}},
        }
    ).encode()
    scan = AnswerScan(DOCUMENT, 1_024)
    for start in range(0, len(body), 900):
        scan.feed(body[start : start + 900])
    assert scan.finish() == facts("", 7, 0, 0)


def test_a_brace_in_a_text_does_not_end_the_usage() -> None:
    """Of a document that is too long to be read whole."""
    usage = {"note": "}", "prompt_tokens": 7, "completion_tokens": 3}
    scan = AnswerScan(DOCUMENT, 1_024)
    scan.feed(json.dumps({"text": "x" * 5_000, "usage": usage}).encode())
    assert scan.finish() == facts("", 7, 3, None)


@pytest.mark.parametrize("piece", [b'{"usage":', b'"usage":{"a":', b'"usage":{},', b'"usage":{"'])
def test_many_usages_in_one_document_are_no_work(piece: bytes) -> None:
    """The last ones count, however many there are; nobody else is served meanwhile."""
    last = b'"usage":{"prompt_tokens":7}}'
    lines = []
    for count in (100, 5_000):
        scan = AnswerScan(DOCUMENT, 65_536)
        scan.feed(b"x" * 131_072 + piece * count + last)
        lines.append(lines_run(scan.finish))
        assert scan.facts == facts("", 7, 0, None)
    assert lines[1] <= lines[0] + 10


@pytest.mark.parametrize("blank", [b"\n", b"\r\n"])
def test_blank_lines_are_little_work(blank: bytes) -> None:
    """A stream may be nothing else; they end an event all the same."""
    scan = AnswerScan(STREAM, 4_096)
    scan.feed(b"event: message_stop\n")
    assert lines_run(partial(scan.feed, blank * 1_000)) < 5_000
    scan.feed(events(chunk("a")))
    assert scan.chunks == 1


@pytest.mark.parametrize("data", [{"error": {"message": "out of memory"}}, {}])
def test_data_without_choices_is_no_chunk(data: dict[str, object]) -> None:
    """An error in the middle of a stream, or whatever keeps the connection open."""
    scan = AnswerScan(STREAM, 4_096)
    scan.feed(events(chunk("a"), data, chunk("b")))
    assert scan.chunks == 2


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        {"prompt_tokens": "7"},
        {"prompt_tokens": -1},
        {"prompt_tokens": 2**32},
        {"prompt_tokens": True},
        {"prompt_tokens": 1.5},
        {"prompt_tokens_details": [], "input_tokens_details": {"cached_tokens": None}},
    ],
)
def test_what_is_no_number_of_tokens_counts_as_absent(usage: object) -> None:
    """Absent is not 0 for cached tokens."""
    scan = AnswerScan(DOCUMENT, 4_096)
    scan.feed(json.dumps({"usage": usage, "model": 3}).encode())
    assert scan.finish() == facts("", 0, 0, None)


def test_other_content_is_left_alone() -> None:
    """Audio, say, is nobody's usage."""
    scan = AnswerScan("audio/mpeg", 4_096)
    scan.feed(CHAT)
    assert (scan.finish(), scan.chunks) == (AnswerFacts(), 0)


@given(
    kind=st.sampled_from([STREAM, DOCUMENT]),
    pieces=st.lists(
        st.binary(max_size=80)
        | st.sampled_from(
            [b"data: ", b"event: x.delta\n", b'"usage":{', b'"model":', b"\n", b"{" * 3_000, b"}"]
        ),
        max_size=40,
    ),
)
def test_nothing_that_arrives_raises(kind: str, pieces: list[bytes]) -> None:
    """Whatever it is; numbers stay such as a report may carry."""
    scan = AnswerScan(kind, 1_024)
    for piece in pieces:
        scan.feed(piece)
    assert 0 <= scan.finish().prompt_tokens < 2**32
    assert 0 <= scan.chunks <= sum(piece.count(b"\n") for piece in pieces) + 1


@pytest.mark.parametrize("kind", [STREAM, DOCUMENT])
@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: {}\n" * 7_000, b"{[" * 30_000])
def test_what_is_remembered_is_bounded(kind: str, piece: bytes) -> None:
    """By the limit and one piece, however long the answer is."""
    scan = AnswerScan(kind, 65_536)
    scan.feed(piece)
    tracemalloc.start()
    for _ in range(60):
        scan.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * len(piece) + 8 * 65_536
