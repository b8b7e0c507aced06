"""How long a prompt is taken to be."""

import json

import pytest

from inferencecache.picker.bodies import Rope
from inferencecache.picker.request import BadBodyError, InferenceRequest, parse_body, rewritten
from inferencecache.settings.picker import PickerParseSettings

PARSE = PickerParseSettings()
PICTURE = "A" * 4_000


def parse(**fields: object) -> InferenceRequest:
    """Return what a body with *fields* says."""
    return parse_body(json.dumps({"model": "m", **fields}).encode(), PARSE)


@pytest.mark.parametrize(
    ("prompt", "tokens"),
    [
        ([1, 2, 3], 3),
        ([], 0),
        ([[1, 2], [3, 4, 5], []], 3),
        ([151644], 1),
        ([1.0, 2, 3.0], 3),
        ([[1.0, 2.5], [3]], 2),
        ([1, "2", 3], 3),
        (["1", 2, 3], 3),
        ([["1", "2"], [3, "4", 5]], 3),
        ([1, "2", *[3] * 5_000], 5_002),
        ([True, False], 2),
    ],
    ids=lambda value: str(value)[:30],
)
def test_token_ids_are_counted(prompt: list[object], tokens: int) -> None:
    """Exactly; of several prompts the longest counts."""
    for request in (parse(prompt=prompt), parse(input=prompt, encoding_format="float")):
        assert request.prompt_tokens == tokens
        assert request.prompt_bytes is None


@pytest.mark.parametrize("written", ["1e0", "1E+0", "-1", " 1.0 ", "1e-999"])
def test_token_ids_are_counted_however_they_are_written(written: str) -> None:
    """A number is one token, whatever signs it is made of."""
    body = f'{{"model":"m","prompt":[{",".join([written] * 101)}]}}'
    assert parse_body(body.encode(), PARSE).prompt_tokens == 101


@pytest.mark.parametrize(
    ("prompt", "is_several"),
    [
        ("hello", False),
        (["hello"], False),
        (["a", "b"], True),
        (["a", "[]]]"], True),
        (["a", "1,2," * 3_000], True),
        (["a", 'say "1," and \\\\' * 3_000], True),
        (["a, " * 5_000], False),
        (["a", list(range(5_000))], True),
        (["a"] * 5_000, True),
        ([[1]] * 5_000, True),
        ([1, 2, 3], False),
        ([[1, 2, 3]], False),
        ([[1, 2], [3]], True),
        ([["1", 2], [3]], True),
        ([["1", 2]], False),
        (["a", [1]], True),
        ([1, "2"], False),
        ([], False),
    ],
    ids=lambda value: str(value)[:30],
)
def test_it_is_known_whether_there_are_several(prompt: object, is_several: bool) -> None:  # noqa: FBT001 - drawn
    """In whatever way they are written."""
    assert parse(prompt=prompt).has_several_prompts is is_several


def test_a_mixture_of_texts_and_lists_of_ids_has_both_sizes() -> None:
    """What an engine makes of it nobody knows, so neither is left out."""
    for token_ids in ([1, 2, 3], list(range(5_000))):
        request = parse(prompt=["hello", token_ids])
        assert (request.prompt_bytes, request.prompt_tokens) == (7, len(token_ids))


@pytest.mark.parametrize(
    ("fields", "size"),
    [
        ({"prompt": "hello"}, 7),
        ({"prompt": ["a", "longest", "b"]}, 9),
        ({"prompt": ["a", "1,2," * 3_000]}, 12_002),
        ({"prompt": ["a, " * 5_000]}, 15_002),
        ({"input": ["a", "bcd"]}, 5),
        ({"input": "abc"}, 5),
        ({"query": "qq", "documents": ["a", "bcd"]}, 4 + 5),
        ({"text_1": "a", "text_2": "bcd"}, 3 + 5),
        ({"messages": ["0123456789"]}, 14),
        ({"messages": ["0123456789"], "tools": ["t"], "system": "s"}, 14 + 5 + 3),
        ({"input": "abc", "instructions": "de"}, 5 + 4),
    ],
    ids=lambda value: str(value)[:30],
)
def test_texts_are_measured(fields: dict[str, object], size: int) -> None:
    """As they are written, quotes and all; of several prompts the longest counts."""
    request = parse(**fields)
    assert request.prompt_bytes == size
    assert request.prompt_tokens is None


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
        {"type": "image", "source": {"type": "base64", "data": PICTURE}},
        {"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}},
    ],
    ids=lambda part: part["type"],
)
def test_pictures_and_sound_are_no_text(part: dict[str, object]) -> None:
    """A picture of a megabyte is not a quarter of a million tokens."""
    size = parse(messages=[{"role": "user", "content": [part]}]).prompt_bytes
    assert size is not None
    assert 0 < size < 200
    text = {"role": "user", "content": [{"type": "text", "data": "some words " * 100}]}
    assert (parse(messages=[text]).prompt_bytes or 0) > 1_000


@pytest.mark.parametrize(
    "messages",
    [["data"], [";base64,"], ["data", "data"], [{"data": 1}], [{"data": ["x"]}], [";base64," * 9]],
    ids=str,
)
def test_words_that_only_look_like_pictures_are_text(messages: list[object]) -> None:
    """Wherever they stand, also at the very end."""
    size = parse(messages=messages).prompt_bytes
    assert size is not None
    assert 0 < size <= len(json.dumps(messages))


def test_what_is_too_much_to_take_apart_is_not_known() -> None:
    """Ten thousand prompts are no reason to build ten thousand objects."""
    data = [{"data": ""}] * 5_000
    for request in (
        parse(prompt=["a"] * 5_000),
        parse(prompt=[[1]] * 5_000),
        parse(messages=data),
        parse(other=1),
    ):
        assert request.prompt_bytes is None
        assert request.prompt_tokens is None


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        (b'{"prompt":"x"}', b'{"model":"n","prompt":"x"}'),
        (b'\xef\xbb\xbf { "prompt":"x"}', b'\xef\xbb\xbf {"model":"n", "prompt":"x"}'),
        (b'{"model":"","prompt":"x"}', b'{"model":"n","prompt":"x"}'),
        (b'{"model": null ,"prompt":"x"}', b'{"model": "n" ,"prompt":"x"}'),
        (b'{"model":null,"model":null,"prompt":"x"}', b'{"model":"n","model":"n","prompt":"x"}'),
        (b'{"model":"a","model":null,"prompt":"x"}', b'{"model":"n","model":"n","prompt":"x"}'),
    ],
)
def test_a_model_can_be_put_where_there_is_none(body: bytes, changed: bytes) -> None:
    """Where it is allowed to lack one; nothing else moves."""
    with pytest.raises(BadBodyError, match="model_"):
        parse_body(body, PARSE)
    request = parse_body(body, PARSE, may_lack_model=True)
    assert request.model == ""
    assert rewritten(Rope([body]), request, "n").join() == changed


def test_null_is_no_model() -> None:
    """It is missing, as a key that is not there; before another value it counts for nothing."""
    with pytest.raises(BadBodyError, match="model_missing"):
        parse_body(b'{"model":null,"prompt":"x"}', PARSE)
    request = parse_body(b'{"model":null,"model":"m","prompt":"x"}', PARSE)
    assert (request.model, request.model_names) == ("m", ("", "m"))
    assert not request.lacks_model


def test_an_empty_object_is_no_request() -> None:
    """Not even where a model would be put into it."""
    with pytest.raises(BadBodyError, match="model_missing"):
        parse_body(b" { }", PARSE, may_lack_model=True)


@pytest.mark.parametrize(
    "content",
    [
        f"a page with data:image/png;base64,{PICTURE}",
        f"data:image/png;base64,{PICTURE}",
        f'{{"url": "data:image/png;base64,{PICTURE}"}}',
        [{"type": "text", "text": f"data:image/png;base64,{PICTURE}"}],
        [{"type": "tool_use", "id": "1", "name": "f", "input": {"data": PICTURE}}],
    ],
    ids=["quoted", "all", "escaped", "part", "tool"],
)
def test_base64_in_texts_and_tools_is_text(content: object) -> None:
    """An engine reads it as it stands there."""
    size = parse(messages=[{"role": "user", "content": content}], system="s").prompt_bytes
    assert size is not None
    assert size >= len(PICTURE)


@pytest.mark.parametrize("length", [1, 100, 10_000])
@pytest.mark.parametrize("letter", ["п", "中", "é", "😀"])
def test_letters_count_as_in_utf8_however_they_are_written(letter: str, length: int) -> None:
    """Whether or not their writer escapes them; long texts are reckoned from samples."""
    for prompt in ({"prompt": letter * length}, {"messages": [letter * length]}):
        plain = parse_body(json.dumps({"model": "m", **prompt}, ensure_ascii=False).encode(), PARSE)
        escaped = parse(**prompt)
        assert plain.prompt_bytes is not None
        assert escaped.prompt_bytes == pytest.approx(plain.prompt_bytes, rel=0.02)


def test_a_backslash_before_a_letter_is_no_escape() -> None:
    """A path of another system is as long as it is."""
    assert parse(prompt=r"C:\users\ulrich").prompt_bytes == len(r'"C:\\users\\ulrich"')
