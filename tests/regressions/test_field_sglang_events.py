"""Public reports about SGLang's events: what broke for others does not break here."""

from engine_events import Producer, keys, stored
from field_events import expected_keys, play

from inferencecache.types import CacheTier


def test_pages_of_one_token_make_one_key() -> None:
    """Sixteen one-token events are one block, and a branch keeps the shared first pages."""
    producer = Producer()
    play(producer, "sglang_page1_chain")
    expected = dict.fromkeys(expected_keys("T16@16"), CacheTier.T1)
    assert producer.held == expected
    assert producer.mapper.orphan_blocks == 0

    parent = 107
    branch = list(range(8))
    for token in branch:
        producer.feed(stored([900 + token], [token], parent=parent, size=1))
        parent = 900 + token
    shared = [151644, 872, 198, 9064, 374, 279, 6722, 315]
    assert producer.held == expected | dict.fromkeys(keys(shared + branch), CacheTier.T1)


def test_memory_of_unfinished_pages_is_bounded() -> None:
    """Pages count as blocks, so the limit on blocks bounds them too."""
    producer = Producer(blocks_max=100)
    for page in range(1_000):
        producer.feed(stored([page], [page], size=1))

    assert producer.mapper.blocks_total <= 100
    assert producer.held == {}
