"""A text that goes on from another is tokenized from there, and has the same blocks."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from small_tokenizers import plain_hashes

from inferencecache.picker.prompt.history import (
    Found,
    Histories,
    KnownText,
    Learned,
    TextNames,
    text_blocks,
)
from inferencecache.picker.prompt.special_tokens import SpecialTokens, any_of, pieces_of

KEY = b"k" * 32
SPECIAL = SpecialTokens(any_of(["<", "<<"]), frozenset({"<"}))  # type: ignore[arg-type] # there are some
texts = st.text(alphabet="ab<", max_size=80)
histories = st.lists(texts, min_size=1, max_size=6)


class Letters:
    """Takes each letter for a token, and counts them."""

    def __init__(self) -> None:
        self.encoded = 0

    def __call__(self, pieces: list[str]) -> Sequence[Sequence[int]]:
        """Return the tokens."""
        self.encoded += sum(map(len, pieces))
        return [[ord(letter) for letter in piece] for piece in pieces]


def read(known: Histories, text: str, block_tokens: int, encode: Letters) -> Learned:
    """Return the blocks of a text, and remember it."""
    pieces = pieces_of(text, SPECIAL, spacing=5)
    names = TextNames(KEY, b"%d" % block_tokens).names_of(pieces)
    learned = text_blocks(pieces, names, known.find(names), encode, block_tokens)
    known.keep(learned.text, learned.former)
    return learned


@given(histories, st.integers(1, 9), st.sampled_from([0, 2_000, 1 << 20]))
def test_every_text_has_its_own_blocks(
    history: list[str], block_tokens: int, bytes_max: int
) -> None:
    """Whatever was read before, in any order, and however little is remembered."""
    known = Histories(bytes_max)
    for end in (*range(1, len(history) + 1), 1, len(history)):
        text = "".join(history[:end])
        blocks = read(known, text, block_tokens, Letters()).blocks

        assert blocks.hashes == plain_hashes([ord(letter) for letter in text], block_tokens)
        assert blocks.prompt_tokens == len(text)
        assert known.used_bytes <= bytes_max


@given(st.lists(histories, min_size=1, max_size=5), st.integers(1, 9))
def test_texts_that_part_do_not_mix(several: list[list[str]], block_tokens: int) -> None:
    """Conversations that begin alike go on each in its own way."""
    known = Histories(1 << 20)
    for text in ("".join(["a<" * 10, *history]) for history in several):
        blocks = read(known, text, block_tokens, Letters()).blocks

        assert blocks.hashes == plain_hashes([ord(letter) for letter in text], block_tokens)
    check_accounts(known)


def check_accounts(known: Histories) -> None:
    """Check that nothing is remembered twice, or after it was dropped."""
    assert known.used_bytes == sum(text.size for text in known._texts.values())
    assert all(id(text) in known._texts for text in known._marks.values())
    for name, text in known._marks.items():
        found = known.find([name])
        assert found.text is text
        assert text.names[found.number] == name


def test_only_what_is_new_is_tokenized() -> None:
    """Beside the turn before it, whose last tokens nobody has kept."""
    known, encode = Histories(1 << 20), Letters()
    turns = ["<" + "a" * 99 for _ in range(50)]
    for end in range(1, 51):
        read(known, "".join(turns[:end]), 16, encode)

    assert encode.encoded < 50 * 3 * 100
    assert len(known) == 1, "each takes the place of the one before it"
    check_accounts(known)


def test_a_beginning_that_many_share_is_found_by_all() -> None:
    """A conversation does not take away what another one goes on from."""
    known, encode = Histories(1 << 20), Letters()
    shared = "<" + "s" * 999 + "<" + "t" * 999
    for name in "abc":
        for turns in range(1, 4):
            read(known, shared + f"<{name * 99}" * turns, 16, encode)

    assert encode.encoded < 2 * len(shared) + 9 * 300 + 2 * 1_100
    assert len(known) == 3
    check_accounts(known)


def test_the_example_of_the_module() -> None:
    """Tokenized is from 9 on; block 12 to 16 is the first that is hashed anew."""
    token_ids = list(range(100, 121))
    text = KnownText(plain_hashes(token_ids, 4), (b"", b"a", b"b"), (0, 9, 21))
    seen: list[str] = []

    def encode(pieces: list[str]) -> list[list[int]]:
        seen.extend(pieces)
        return [token_ids[9:], [7, 8, 9]]

    learned = text_blocks(["x", "y", "z"], (b"", b"a", b"b"), Found(text, 2), encode, 4)

    assert seen == ["y", "z"]
    assert learned.blocks.hashes == plain_hashes([*token_ids, 7, 8, 9], 4)
    assert learned.text.tokens == (0, 9, 21)


def test_what_is_unused_for_longest_is_forgotten() -> None:
    """What others still go on from is used."""
    known, encode = Histories(3_000), Letters()
    base = "<" + "s" * 50
    for text in (base + "<aaaaaaaa", base + "<aaaaaaaa<bbbbbbbb"):
        read(known, text, 16, encode)
    for name in "cdefgh":
        read(known, f"<{name * 50}<" + name * 50, 16, encode)
        read(known, base + "<aaaaaaaa<bbbbbbbb<" + name, 16, encode)
        check_accounts(known)

    assert known.find(TextNames(KEY, b"16").names_of(pieces_of(base + "<aaaa<bbbb", SPECIAL, 5)))


words = st.lists(st.text(alphabet="ab<.|", min_size=1, max_size=4), min_size=1, max_size=8)


@given(words, st.text(alphabet="ab<.|", max_size=30))
def test_the_longest_word_at_the_first_place_is_found(listed: list[str], text: str) -> None:
    """As tokenizers take special tokens out of a text."""
    pattern = any_of(listed)
    assert pattern is not None
    found, at = [], 0
    while at < len(text):
        word = max((word for word in listed if text.startswith(word, at)), key=len, default="")
        if word:
            found.append((at, word))
        at += len(word) or 1

    assert [(match.start(), match[0]) for match in pattern.finditer(text)] == found


def test_words_may_be_long_and_go_on_from_one_another() -> None:
    """However long, and however many: a tokenizer may have runs of every length."""
    runs = ["a" * length for length in range(1, 121)]
    pattern = any_of([*runs, "b" * 1_024, "b" * 1_023 + "c"])
    assert pattern is not None
    texts_found = ["a" * 90, "b" * 1_023 + "c", "b" * 1_024, "a" * 120, "a" * 7]
    text = " ".join(texts_found[:3]) + "b" + "".join(texts_found[3:])

    assert pattern.findall(text) == texts_found


@given(
    st.text(alphabet="a<", max_size=200), st.integers(1, 30), st.text(alphabet="a<", max_size=50)
)
def test_pieces_depend_on_what_stands_before_them_only(text: str, spacing: int, more: str) -> None:
    """Or they would not be found again; and together they are the text."""
    pieces = pieces_of(text, SPECIAL, spacing)
    longer = pieces_of(text + more, SPECIAL, spacing)

    assert "".join(pieces) == text
    assert all(piece[0] == "<" for piece in pieces[1:])
    assert [len(piece) >= spacing for piece in pieces[:-1]] == [True] * (len(pieces) - 1)
    common = len(pieces) - 1 if not text.endswith("<") else max(len(pieces) - 2, 0)
    assert longer[:common] == pieces[:common]


def test_no_words_are_found_nowhere() -> None:
    """A tokenizer may have none."""
    assert any_of([]) is None
    assert any_of([""]) is None
