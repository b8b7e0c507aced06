"""Conversations that go on are tokenized from where they are new, with real tokenizers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_rig import BLOCK_TOKENS, LATER_NS, chat, engines, prompt_rig
from small_tokenizers import (
    BOS,
    EOS,
    SPECIAL,
    TEXTS,
    TURN,
    plain_blocks,
    trained,
    write_tokenizer,
)
from tokenizers import (
    AddedToken,
    Tokenizer,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

from inferencecache.picker.prompt.special_tokens import pieces_of
from inferencecache.transport.tokenize_local import LocalTokenizer

UNKNOWN = "<unk>"
AGENT = [
    ("user", TEXTS[0] * 30),
    ("assistant", TEXTS[1] * 30),
    ("tool", TEXTS[2] * 60),
    ("assistant", TEXTS[3] * 30),
    ("user", TEXTS[4] * 30),
]


def with_metaspace(scheme: str) -> Tokenizer:
    """Return a tokenizer that puts a blank before words, or before the first one only."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    return filled(tokenizer)


def with_prepending_normalizer() -> Tokenizer:
    """Return a tokenizer that puts a blank before every text, and replaces the others."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    return filled(tokenizer)


def with_words() -> Tokenizer:
    """Return a tokenizer of whole words."""
    tokenizer = Tokenizer(models.WordLevel(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordLevelTrainer(special_tokens=[UNKNOWN, *SPECIAL], show_progress=False)
    )
    return tokenizer


def filled(tokenizer: Tokenizer) -> Tokenizer:
    """Train *tokenizer* on a few lines."""
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        show_progress=False,
        special_tokens=[AddedToken(token, special=True) for token in (UNKNOWN, *SPECIAL)],
    )
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    return tokenizer


def with_greedy_special() -> Tokenizer:
    """Return a tokenizer with special tokens that take blanks around them, and other odd ones."""
    tokenizer = trained()
    tokenizer.add_special_tokens(
        [AddedToken("<mask>", lstrip=True, special=True), AddedToken("<s>", rstrip=True)]
    )
    tokenizer.add_tokens([AddedToken("<|turn|>>", normalized=False), AddedToken("warm")])
    return tokenizer


MAKERS: list[Callable[[], Tokenizer]] = [
    trained,
    lambda: with_metaspace("always"),
    lambda: with_metaspace("first"),
    lambda: with_metaspace("never"),
    with_prepending_normalizer,
    with_words,
    with_greedy_special,
]
TOKENIZERS = [maker() for maker in MAKERS]
LOCAL = [
    LocalTokenizer(tokenizer, {}, {}, lambda: None, adds_bos=False)  # type: ignore[arg-type, return-value] # no template
    for tokenizer in TOKENIZERS
]
written = st.lists(
    st.sampled_from([*SPECIAL, "<mask>", "<s>", "<|turn|>>", " ", "\n", "warm", "<|tu", "▁"])
    | st.text(max_size=12)
    | st.sampled_from(TEXTS),
    max_size=25,
).map("".join)


@pytest.mark.parametrize("number", range(len(MAKERS)))
@given(text=written)
def test_the_tokens_of_pieces_are_those_of_the_text(number: int, text: str) -> None:
    """For tokenizers of every make, wherever special tokens stand."""
    local = LOCAL[number]
    pieces = pieces_of(text, local._special, spacing=1)
    (whole,) = local.encode([text])

    assert [token for piece in local.encode(pieces) for token in piece] == whole


def test_tokenizers_are_taken_apart_at_all() -> None:
    """Or the test above would prove nothing."""
    text = f"{BOS}a{TURN}b{EOS}" * 9

    assert [len(pieces_of(text, local._special, spacing=1)) > 9 for local in LOCAL] == [True] * len(
        LOCAL
    )


@pytest.mark.parametrize("number", range(len(MAKERS)))
async def test_each_turn_of_an_agent_has_the_blocks_of_the_whole(
    tmp_path: Path, number: int
) -> None:
    """Blocks of a conversation that went on are those of one that was read at once."""
    tokenizer = write_tokenizer(tmp_path, TOKENIZERS[number])
    members = engines(tokenizer=tmp_path)
    async with prompt_rig(cache_bytes_max=0) as rig:
        for turns in (1, 3, 5, 4, 5):
            text = BOS + "".join(f"{TURN}{role}\n{said}{EOS}" for role, said in AGENT[:turns])
            text += f"{TURN}assistant\n"
            token_ids = tokenizer.encode(text, add_special_tokens=False).ids
            found = await rig.exact(chat(*AGENT[:turns]), members)

            assert found == plain_blocks(token_ids, BLOCK_TOKENS)
        assert rig.clock.now_ns() == LATER_NS


async def test_another_tokenizer_or_block_size_goes_on_from_nothing(tmp_path: Path) -> None:
    """Tokens that stand before a mark are those of one tokenizer."""
    tokenizer = write_tokenizer(tmp_path / "a")
    other = write_tokenizer(tmp_path / "b", with_words())
    text = BOS + "".join(f"{TURN}{role}\n{said}{EOS}" for role, said in AGENT)
    async with prompt_rig() as rig:
        for block_tokens in (4, 16):
            for name, each in (("a", tokenizer), ("b", other)):
                members = engines(tokenizer=tmp_path / name, block_tokens=block_tokens)
                body = chat(*AGENT, add_generation_prompt=False)
                token_ids = each.encode(text, add_special_tokens=False).ids

                assert await rig.exact(body, members) == plain_blocks(token_ids, block_tokens)


@pytest.mark.parametrize(
    "token",
    [AddedToken("word", single_word=True, special=True), AddedToken("<" * 1_025, special=True)],
    ids=["looks around", "very long"],
)
async def test_a_tokenizer_that_cannot_be_taken_apart_is_used_whole(
    tmp_path: Path, token: AddedToken
) -> None:
    """Its special tokens look at the words beside them, or reach over a whole piece."""
    tokenizer = trained()
    tokenizer.add_special_tokens([token])
    assert LocalTokenizer(tokenizer, {}, {}, lambda: None, adds_bos=False)._special is None  # type: ignore[arg-type, return-value] # no template
    write_tokenizer(tmp_path, tokenizer)
    text = f"{BOS}{TURN}user\n{'sword word ' * 200}{EOS}{TURN}assistant\n"
    token_ids = tokenizer.encode(text, add_special_tokens=False).ids
    async with prompt_rig() as rig:
        found = await rig.exact(chat(("user", "sword word " * 200)), engines(tokenizer=tmp_path))

        assert found == plain_blocks(token_ids, BLOCK_TOKENS)


async def test_histories_hold_no_text_and_no_tokens(tmp_path: Path) -> None:
    """Names, counts and hashes."""
    tokenizer = write_tokenizer(tmp_path)
    async with prompt_rig() as rig:
        await rig.exact(chat(*AGENT), engines(tokenizer=tmp_path))
        histories = rig.prompts.reader._learning.histories
        (text,) = histories._texts.values()

        assert len(histories) == 1
        assert not {len(name) for name in text.names[1:]} - {32}
        assert TEXTS[0].encode() not in b"".join((text.hashes, *text.names))
        assert json.dumps(tokenizer.encode(TEXTS[0]).ids)[1:-1] not in repr(text)
