"""Blocks of characters: same beginnings, same blocks."""

from dataclasses import replace

from fleets import row
from hypothesis import given
from hypothesis import strategies as st
from prompt_rig import conversation

from inferencecache.picker.prompt import PromptBlocks
from inferencecache.picker.prompt.characters import (
    character_blocks,
    character_seed,
    flattened,
)
from inferencecache.picker.prompt.conversation import (
    Conversation,
    Media,
    Message,
    TextPrompt,
    TokenIdPrompt,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
parts = st.text(max_size=300) | json_values.map(Media)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    content=st.text(max_size=300) | st.lists(parts, max_size=3).map(tuple),
    rest=st.fixed_dictionaries({}, optional={"tool_calls": json_values, "name": json_values}),
)
conversations = st.builds(
    Conversation,
    messages=st.lists(messages, min_size=1, max_size=6).map(tuple),
    tools=st.none() | st.lists(json_values, max_size=3).map(tuple),
)
seeds = st.integers(0, 2**64 - 1)


def hashes(prompt: object, seed: int = 5) -> bytes:
    """Return the blocks of a prompt."""
    return character_blocks(flattened(prompt), 1 << 20, seed, 4).hashes  # type: ignore[arg-type] # one of three


def block_set(blocks: PromptBlocks) -> set[bytes]:
    """Return the hashes one by one."""
    return {blocks.hashes[at : at + 8] for at in range(0, len(blocks.hashes), 8)}


@given(conversations, st.integers(0, 6))
def test_fewer_turns_have_a_beginning_of_the_blocks_of_more(
    whole: Conversation, turns: int
) -> None:
    """An agent that sends its history and one turn more finds all blocks of before."""
    part = replace(whole, messages=whole.messages[:turns])

    assert flattened(whole).startswith(flattened(part))
    assert hashes(whole).startswith(hashes(part))


@given(conversations, seeds, seeds)
def test_other_seeds_share_no_block(prompt: Conversation, seed: int, other: int) -> None:
    """Chains begin with everything that must tell them apart."""
    one, two = (character_blocks(flattened(prompt), 1 << 20, each, 4) for each in (seed, other))
    blocks = [
        {found.hashes[at : at + 8] for at in range(0, len(found.hashes), 8)} for found in (one, two)
    ]

    assert one == two if seed == other else not blocks[0] & blocks[1]


@given(st.text(max_size=2_000), st.integers(256, 1_000), st.sampled_from([1, 2, 4, 7]))
def test_no_more_than_asked_for_becomes_blocks(
    text: str, bytes_max: int, bytes_per_token: int
) -> None:
    """What is left out is said; a block holds 64 tokens, however long these are believed to be."""
    found = character_blocks(flattened(TextPrompt(text=text)), bytes_max, 5, bytes_per_token)
    length, block_bytes = len(text.encode()), 64 * bytes_per_token

    assert found.block_tokens == 64
    assert len(found.hashes) == 8 * (min(length, bytes_max) // block_bytes)
    assert (found.cut == "long") == (length // block_bytes > bytes_max // block_bytes)
    assert found.prompt_tokens == -(-length // bytes_per_token)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=200))
def test_token_ids_fill_a_block_with_as_many_as_it_is_believed_to_hold(
    token_ids: list[int],
) -> None:
    """64 of them, 4 bytes each."""
    found = character_blocks(flattened(TokenIdPrompt(token_ids=token_ids)), 1 << 20, 5, 4)

    assert len(found.hashes) == 8 * (len(token_ids) // 64)
    assert found.prompt_tokens == len(token_ids)


@given(st.lists(st.integers(), max_size=9))
def test_numbers_that_are_no_tokens_break_nothing(token_ids: list[int]) -> None:
    """The engine refuses them later."""
    assert len(flattened(TokenIdPrompt(token_ids=token_ids))) == 4 * len(token_ids)


def test_tools_come_first_so_that_a_system_prompt_does_not_hide_them() -> None:
    """Templates write them there, and they are the same for every turn."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hello"}],
        "tools": [{"type": "function", "function": {"name": "add"}}],
    }
    text = flattened(conversation(body))

    assert text.index(b"add") < text.index(b"hello")


def test_pictures_are_told_apart() -> None:
    """The same text with another picture is another prompt, and the same picture the same."""

    def with_picture(url: str) -> bytes:
        picture = {"type": "image_url", "image_url": {"url": url}}
        return flattened(
            Conversation(messages=(Message(role="user", content=("what?", Media(picture))),))
        )

    assert with_picture("a") == with_picture("a") != with_picture("b")


def test_fields_of_a_seed_cannot_be_moved_into_one_another() -> None:
    """A model whose name ends like a salt is not that salt."""
    secret = b"s" * 32
    made = [
        character_seed(secret, row("ab"), b"c"),
        character_seed(secret, row("a"), b"bc"),
        character_seed(secret, row("a", adapter_of="b"), b"c"),
        character_seed(b"t" * 32, row("ab"), b"c"),
    ]

    assert len(set(made)) == 4
