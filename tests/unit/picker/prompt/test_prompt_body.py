"""What of a body makes its prompt, and the name that says nothing about it."""

import json
from functools import partial
from weakref import ref

import msgspec
import pytest
from processor_time import least_s

from inferencecache.picker.prompt.prompt_body import PromptBody, prompt_body_of, read_prompt_body
from inferencecache.picker.prompt.prompt_digest import PromptNames
from inferencecache.picker.request.envelope import PromptKeys, read_top_level

NAMES = PromptNames(b"k" * 32)
KEYS = PromptKeys.__struct_fields__


def read(data: bytes) -> PromptBody:
    """Return what a body says."""
    body = read_prompt_body(data)
    assert body is not None
    return body


def name(body: object, context: bytes = b"") -> bytes:
    """Return the name of a body."""
    return NAMES.name_of(read(json.dumps(body).encode()), context).whole


@pytest.mark.parametrize("key", KEYS)
def test_each_key_that_makes_a_prompt_makes_another_name(key: str) -> None:
    """Whether it is there, and what it says."""
    names = {name({"messages": []}), name({key: 1}), name({key: 2}), name({key: "1"}), name({})}

    assert len(names) == 5


def test_a_value_under_another_key_is_another_prompt() -> None:
    """Places are part of a name, and so are lengths."""
    assert len({name({key: "a"}) for key in KEYS}) == len(KEYS)
    assert name({"prompt": "a", "input": "b"}) != name({"prompt": "b", "input": "a"})


def test_what_makes_no_prompt_makes_no_name() -> None:
    """Sampling, streaming, users."""
    plain = {"prompt": "a"}

    assert name(plain) == name({**plain, "temperature": 1, "stream": True, "user": "u"})


def test_contexts_and_processes_have_names_of_their_own() -> None:
    """Another tokenizer, another key."""
    body = read(b'{"prompt": "a"}')
    others = {
        NAMES.name_of(body, b""),
        NAMES.name_of(body, b"1"),
        PromptNames(b"l" * 32).name_of(body, b""),
    }

    assert len(others) == 3


def test_half_a_surrogate_is_read_as_something_harmless() -> None:
    """Browsers send it where they cut a text; the body was taken, so the prompt is, too."""
    body = read(b'{"messages": [{"role": "user", "content": "a\\ud83d"}]}')

    assert _turns(body) == [{"role": "user", "content": "a\u263d"}]


def _turns(body: PromptBody) -> list[dict[str, str]]:
    """Return the turns of a body, taken apart or not."""
    messages = body.keys.messages
    return list(map(json.loads, body.turns)) or json.loads(bytes(messages))


@pytest.mark.parametrize("half", ["\\ud83d", "\\uD83D", "\\udfff", "\\uDBff"])
def test_a_great_many_halves_are_read_at_the_speed_of_memory(half: str) -> None:
    """Whoever sends them holds up others no longer than with any other text of that length."""
    count = 200_000
    spent: dict[str, float] = {}
    for written in ("\\u00e9", half):
        data = ('{"messages": [{"role": "user", "content": "' + written * count + '"}]}').encode()
        spent[written] = least_s(partial(partial, read, data))
        (turn,) = _turns(read(data))
        assert len(turn["content"]) == count
        assert turn["content"].encode()  # half a pair has no bytes

    assert spent[half] < 15 * spent["\\u00e9"]


def test_a_byte_order_mark_is_no_part_of_a_prompt() -> None:
    """The body keeps it."""
    plain = b'{"prompt": "a"}'

    assert NAMES.name_of(read(b"\xef\xbb\xbf" + plain), b"") == NAMES.name_of(read(plain), b"")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"prompt": }'])
def test_what_is_no_body_has_no_prompt(data: bytes) -> None:
    """Nothing is raised."""
    assert read_prompt_body(data) is None


@pytest.mark.parametrize(
    ("fields", "salt"),
    [
        ({}, b""),
        ({"cache_salt": None, "extra_key": ""}, b""),
        ({"cache_salt": "a"}, b'"a"\n'),
        ({"extra_key": "a"}, b'\n"a"'),
        ({"cache_salt": "a", "extra_key": ["b"]}, b'"a"\n["b"]'),
    ],
    ids=str,
)
def test_salts_are_as_they_are_written(fields: dict[str, object], salt: bytes) -> None:
    """One in the place of the other is another one."""
    assert read(json.dumps(fields).encode()).salt == salt


def test_a_prompt_asked_for_again_is_looked_at_no_more() -> None:
    """As long as it is the same object, with the same turns, in the same context."""
    content = b'{"messages": [{"role": "user", "content": "' + b"a" * 100_000 + b'"}]}'
    top_level, names = read_top_level(content), PromptNames(b"k" * 32)
    anew_s = least_s(lambda: partial(names.name_of, read(content), b"x"))
    first = names.name_of(prompt_body_of(top_level), b"x")
    again_s = least_s(lambda: partial(names.name_of, prompt_body_of(top_level), b"x"))

    assert names.name_of(prompt_body_of(top_level), b"x") is first
    assert again_s < anew_s / 5
    assert names.name_of(prompt_body_of(top_level), b"y") != first
    fewer = msgspec.structs.replace(prompt_body_of(top_level), turns=())
    assert names.name_of(fewer, b"y") != names.name_of(prompt_body_of(top_level), b"y")
    assert names.name_of(read(content), b"x") == first


def test_nothing_of_a_prompt_is_kept_for_its_name() -> None:
    """The bytes go when the body does."""
    names = PromptNames(b"k" * 32)
    body = read(b'{"prompt": "a"}')
    keys = ref(body.keys)
    names.name_of(body, b"x")
    del body

    assert keys() is None
    assert names.name_of(read(b'{"prompt": "b"}'), b"x") != names.name_of(
        read(b'{"prompt": "a"}'), b"x"
    )
