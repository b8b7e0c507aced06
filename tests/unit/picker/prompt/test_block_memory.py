"""What is remembered of prompts is bounded."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.picker.prompt import PromptBlocks
from inferencecache.picker.prompt.block_memory import BlockMemory


def blocks(count: int) -> PromptBlocks:
    """Return as many blocks."""
    return PromptBlocks(
        hashes=bytes(8 * count), block_tokens=16, prompt_tokens=16 * count, is_exact=True
    )


@given(
    st.integers(0, 3_000),
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 300))),
)
def test_no_history_takes_more_than_its_share(
    bytes_max: int, history: list[tuple[str, int]]
) -> None:
    """And the count of bytes is that of what is there."""
    memory = BlockMemory(bytes_max)
    for name, count in history:
        memory.keep(name.encode(), blocks(count))
        assert memory.used_bytes <= bytes_max
        found = memory.find(name.encode())
        assert found in (None, blocks(count))

    kept = [memory.find(name.encode()) for name in "abcdef"]
    assert memory.used_bytes == sum(len(found.hashes) + 400 for found in kept if found is not None)
    assert len(memory) == sum(found is not None for found in kept)


def test_what_is_used_stays() -> None:
    """The one unused for longest goes first."""
    memory = BlockMemory(1_300)
    for name in (b"a", b"b", b"c"):
        memory.keep(name, blocks(2))
    memory.find(b"a")
    memory.keep(b"d", blocks(2))

    assert [name for name in (b"a", b"b", b"c", b"d") if memory.find(name)] == [b"a", b"c", b"d"]
