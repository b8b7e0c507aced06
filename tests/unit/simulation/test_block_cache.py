"""The simulated cache: hand-worked steps, and a naive model of leaf-first LRU."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.simulation import BlockCache


def chain(path: str) -> list[bytes]:
    """Return one key per letter; a key names the path up to its letter."""
    return [path[:end].encode() for end in range(1, len(path) + 1)]


def test_worked_example() -> None:
    """The steps in the module's docstring happen as drawn there."""
    cache = BlockCache(4)

    first = cache.serve(chain("abc"))
    second = cache.serve(chain("abd"))
    third = cache.serve(chain("e"))

    assert (first.hit_blocks, list(first.stored), first.evicted) == (0, chain("abc"), [])
    assert (second.hit_blocks, list(second.stored), second.evicted) == (2, [b"abd"], [])
    assert (third.hit_blocks, list(third.stored), third.evicted) == (0, [b"e"], [b"abc"])


def test_hit_refreshes_its_blocks() -> None:
    """A prefix that was just used outlives one that was not."""
    cache = BlockCache(4)
    cache.serve(chain("ab"))
    cache.serve(chain("xy"))
    cache.serve(chain("ab"))

    outcome = cache.serve(chain("pq"))

    assert outcome.evicted == [b"xy", b"x"]


def test_chain_longer_than_the_cache_keeps_its_head() -> None:
    """Only what fits is stored; the chain never evicts itself."""
    cache = BlockCache(2)

    outcome = cache.serve(chain("abcd"))

    assert list(outcome.stored) == chain("ab")
    assert outcome.evicted == []
    assert cache.matched_blocks(chain("abcd")) == 2
    assert b"abc" not in cache


def test_looking_does_not_refresh() -> None:
    """Matching is a read: the order of use stays."""
    cache = BlockCache(2)
    cache.serve(chain("a"))
    cache.serve(chain("b"))
    cache.matched_blocks(chain("a"))

    assert cache.serve(chain("c")).evicted == [b"a"]


def test_empty_chain_does_nothing() -> None:
    """A prompt shorter than a block neither hits nor stores."""
    cache = BlockCache(2)

    outcome = cache.serve([])

    assert (outcome.hit_blocks, list(outcome.stored), len(cache)) == (0, [], 0)


class NaiveCache:
    """A tree by parent links; each victim is the leaf whose last use is oldest."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.last_use: dict[bytes, int] = {}
        self.now = 0

    def serve(self, path: str) -> tuple[int, list[bytes], list[bytes]]:
        """Return hits, stored and evicted."""
        self.now += 1
        keys = chain(path)[: self.capacity]
        hit = 0
        while hit < len(keys) and keys[hit] in self.last_use:
            hit += 1
        evicted = []
        while len(self.last_use) + len(keys) - hit > self.capacity:
            evicted.append(self.evict(keys))
        for key in keys:
            self.last_use[key] = self.now
        return hit, keys[hit:], evicted

    def evict(self, pinned: list[bytes]) -> bytes:
        """Remove the least recently used leaf outside *pinned*."""
        parents = {key[:-1] for key in self.last_use}
        leaves = [key for key in self.last_use if key not in parents and key not in pinned]
        victim = min(leaves, key=lambda key: self.last_use[key])
        del self.last_use[victim]
        return victim


@given(
    capacity=st.integers(1, 9),
    paths=st.lists(st.text(alphabet="abc", max_size=6), max_size=40),
)
def test_equals_the_naive_model(capacity: int, paths: list[str]) -> None:
    """Hits, stores, victims and their order are those of a leaf-first LRU tree."""
    cache, model = BlockCache(capacity), NaiveCache(capacity)

    for path in paths:
        outcome = cache.serve(chain(path))
        assert (outcome.hit_blocks, list(outcome.stored), outcome.evicted) == model.serve(path)
        assert len(cache) == len(model.last_use) <= capacity
        assert all(key in cache for key in model.last_use)
