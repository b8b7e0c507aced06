"""YAML read strictly: what would have to be guessed at is refused, and everything is bounded."""

import math

import pytest

from inferencecache.resources.documents import (
    Document,
    UnreadableFileError,
    parse_documents,
)
from inferencecache.settings.resources import ResourceSettings

SETTINGS = ResourceSettings(depth_max=8, nodes_max=100)


def parsed(text: str | bytes, settings: ResourceSettings = SETTINGS) -> list[Document]:
    """Return the documents of *text*."""
    content = text if isinstance(text, bytes) else text.encode()
    return [document for document in parse_documents(content, settings) if document is not None]


def value(text: str) -> object:
    """Return the value of the only document, which has no flaws."""
    (document,) = parsed(text)
    assert not document.flaws
    return document.value


def refused(text: str | bytes) -> str:
    """Return why a file is refused as a whole."""
    with pytest.raises(UnreadableFileError) as caught:
        parsed(text)
    flaw = caught.value.flaw
    return f"{flaw.line}: {flaw.value}; {flaw.allowed}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "a"),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ("!!str 1", "1"),
        ("1", 1),
        ("-7", -7),
        ("+7", 7),
        ("010", 8),
        ("0o10", 8),
        ("-0x1F", -31),
        ("0b101", 5),
        ("1_000", 1000),
        ("0", 0),
        ("08", 8.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("-.inf", float("-inf")),
        ("yes", True),
        ("Off", False),
        ("y", "y"),
        ("~", None),
        ("2026-01-01", "2026-01-01"),
        ("1:30", "1:30"),
        ("", None),
        ("1" * 500, "1" * 500),
    ],
)
def test_scalars_mean_what_kubectl_takes_them_for(text: str, expected: object) -> None:
    """Numbers and words are typed; dates and clock times stay texts."""
    assert value(f"v: {text}") == {"v": expected}


def test_not_a_number_is_a_number() -> None:
    """It is no text; whoever wants a number refuses it."""
    (document,) = parsed(".nan")

    assert isinstance(document.value, float)
    assert math.isnan(document.value)


def test_empty_documents_do_not_count() -> None:
    """A separator at either end is usual; numbers go on as in the file."""
    documents = parsed("---\n---\na: 1\n---\n")

    assert [(document.number, document.line) for document in documents] == [(2, 2)]


def test_a_key_given_twice_is_a_flaw() -> None:
    """The path says which, the first value stays to name the object by."""
    (document,) = parsed("a: {b: [{c: 1, d: {e: 1, e: 2}, c: {x: 1, x: 2}}]}")

    assert document.value == {"a": {"b": [{"c": 1, "d": {"e": 1}}]}}
    assert [(flaw.field, flaw.allowed) for flaw in document.flaws] == [
        ("a.b[0].d.e", "each key once"),
        ("a.b[0].c", "each key once"),
    ]


@pytest.mark.parametrize("key", ["1", "yes", "~", "<<", "1.5"])
def test_a_key_must_be_a_text(key: str) -> None:
    """A merge key is none, either; quoted, any text will do."""
    (document,) = parsed(f"{key}: {{}}")

    assert document.value == {}
    assert len(document.flaws) >= 1
    assert value("'<<': 1") == {"<<": 1}


def test_no_text_is_swallowed() -> None:
    """Not even one that only an escape can write: it is a key like any other."""
    assert value('"\\0": {"\\0": 1, b: 2}') == {"\0": {"\0": 1, "b": 2}}
    (document,) = parsed('"\\0": {a: 1, a: 2}')
    assert [flaw.field for flaw in document.flaws] == ["'\\x00'.a"]


@pytest.mark.parametrize(
    "text", ["", "\n \n", "---", "---\n---\n", "--- \n...\n", "%YAML 1.1\n---\n"]
)
def test_a_file_that_says_nothing_is_no_file_yet(text: str) -> None:
    """Half a file may end anywhere, in front of its first document too; a comment is on purpose."""
    assert refused(text) == "1: an empty file; at least one YAML document or comment"
    assert parsed(f"# nothing\n{text}") == []


def test_tags_are_flaws() -> None:
    """Types come from the form alone."""
    (document,) = parsed("a: !!python/name:os.system x\nb: !!set {}\nc: !!int '1'")

    assert [flaw.field for flaw in document.flaws] == ["a", "b", "c"]


def test_flaws_are_bounded() -> None:
    """A document full of them does not fill the memory."""
    (document,) = parsed("\n".join(["a: 1"] * 90))

    assert len(document.flaws) == 20


def test_aliases_stand_for_what_is_above() -> None:
    """Anchors are a file's own shorthand, within one document."""
    assert value("a: &x {b: 1}\nc: *x\nd: [&y z, *y]") == {
        "a": {"b": 1},
        "c": {"b": 1},
        "d": ["z", "z"],
    }
    assert refused("a: &x 1\n--- \nb: *x") == "3: alias *x; an alias of something above"
    assert "alias" in refused("a: &x [*x]")


def test_aliases_count_as_all_that_they_stand_for() -> None:
    """A short file cannot stand for a billion nodes."""
    lines = ["a0: &a0 [x, x, x]"]
    lines += [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}]" for n in range(1, 7)]

    assert "too many nodes" in refused("\n".join(lines))


def test_aliases_count_as_all_their_levels() -> None:
    """A short file cannot be nested deeper than a long one."""
    lines = ["a0: &a0 []", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 9))]

    assert "nested too deeply" in refused("\n".join(lines))


@pytest.mark.parametrize(
    "text",
    [
        "[" * 9,
        "{a: " * 9,
        "- " * 9 + "x",
    ],
)
def test_nesting_is_bounded(text: str) -> None:
    """Nine levels are more than eight."""
    assert "nested too deeply; at most 8 levels" in refused(text)


def test_nodes_are_bounded() -> None:
    """A hundred and one nodes are more than a hundred."""
    assert "too many nodes" in refused("[" + "x, " * 101 + "[]]")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b" \n",
        b"\xff\xff",
        b"a: \x00",
        b"a: [1",
        b"a: b: c",
        b"\ta: 1",
        b"%YAML 3.0\n---\na",
        b'"\\ud800"',
        b"? [a]\n: 1",
        b"? *x\n: 1",
        b"\xff\xfea",
    ],
)
def test_what_is_no_yaml_is_refused_as_a_whole(text: bytes) -> None:
    """Whatever the bytes, there is one error and it says why."""
    refused(text).encode("ascii")


def test_errors_say_the_line() -> None:
    """So that an editor can be told to go there."""
    assert refused("a: 1\nb: [").startswith("3: ")
