"""The time a simulated engine takes is what its rules say."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.clock import NS_PER_MS
from inferencecache.simulation import (
    BlockCache,
    Computed,
    ComputeRules,
    EngineCompute,
    Finished,
    FirstToken,
    Job,
)
from inferencecache.simulation.block_cache import CacheOutcome

BLOCK_TOKENS = 100
RULES = ComputeRules(
    prefill_tokens_per_s=8_000,
    base_ns=50 * NS_PER_MS,
    decode_token_ns=20 * NS_PER_MS,
    concurrency_max=64,
)


class Cache:
    """A cache of blocks of 100 tokens."""

    def __init__(self, blocks: int = 1_000) -> None:
        self.blocks = BlockCache(blocks)

    def matched_tokens(self, prompt: Sequence[bytes]) -> int:
        """Return the tokens of the leading blocks."""
        return self.blocks.matched_blocks(prompt) * BLOCK_TOKENS

    def store(self, prompt: Sequence[bytes]) -> CacheOutcome:
        """Keep the blocks."""
        return self.blocks.serve(prompt)


Engine = EngineCompute[Sequence[bytes], CacheOutcome]


def job(
    number: int, prompt_tokens: int, output_tokens: int = 1, name: str = ""
) -> Job[Sequence[bytes]]:
    """Return a request whose prompt is made of blocks called after *name*, or its number."""
    blocks = [f"{name or number}:{at}".encode() for at in range(prompt_tokens // BLOCK_TOKENS)]
    return Job(
        number=number, prompt=blocks, prompt_tokens=prompt_tokens, output_tokens=output_tokens
    )


def played(engine: Engine) -> list[tuple[str, int, float]]:
    """Let *engine* work until it is idle; return kind, request and milliseconds of each step."""
    steps: list[tuple[str, int, float]] = []
    while (due_ns := engine.due_ns) is not None:
        steps += [
            (type(step).__name__, step.job.number, step.at_ns / NS_PER_MS)
            for step in engine.advance(due_ns)
        ]
    return steps


def test_prompts_are_computed_one_after_the_other_and_answered_side_by_side() -> None:
    """The worked example of the module."""
    engine: Engine = EngineCompute(RULES, Cache())
    engine.submit(job(1, 4_000, 3), 0)
    engine.submit(job(2, 800, 3), 0)

    assert played(engine) == [
        ("Computed", 1, 500),
        ("FirstToken", 1, 550),
        ("Finished", 1, 590),
        ("Computed", 2, 600),
        ("FirstToken", 2, 650),
        ("Finished", 2, 690),
    ]
    assert (engine.waiting, engine.running) == (0, 0)


def test_what_is_cached_is_not_computed_but_for_the_last_token() -> None:
    """A prompt that is cached as a whole still takes the time of one token."""
    engine: Engine = EngineCompute(RULES, Cache())
    engine.submit(job(1, 800, name="same"), 0)
    engine.advance(1_000 * NS_PER_MS)
    engine.submit(job(2, 800, name="same"), 1_000 * NS_PER_MS)

    first, *_ = engine.advance(2_000 * NS_PER_MS)

    assert isinstance(first, Computed)
    assert first.cached_tokens == 799
    assert first.at_ns == 1_000 * NS_PER_MS + NS_PER_MS // 8


def test_a_prompt_behind_its_twin_finds_what_that_left() -> None:
    """The cache is asked when a prompt's turn comes, not when it arrives."""
    engine: Engine = EngineCompute(RULES, Cache())
    engine.submit(job(1, 850, name="same"), 0)
    engine.submit(job(2, 850, name="same"), 0)

    computed = [step for step in engine.advance(10**12) if isinstance(step, Computed)]

    assert [step.cached_tokens for step in computed] == [0, 800]
    assert computed[0].change.stored == job(1, 850, name="same").prompt


def test_a_full_engine_begins_when_an_answer_ends() -> None:
    """With room for one request the second waits for the end of the first answer."""
    rules = ComputeRules(
        prefill_tokens_per_s=8_000, base_ns=0, decode_token_ns=NS_PER_MS, concurrency_max=1
    )
    engine: Engine = EngineCompute(rules, Cache())
    engine.submit(job(1, 800, 101), 0)
    engine.submit(job(2, 800), 0)
    engine.advance(150 * NS_PER_MS)
    assert (engine.waiting, engine.running) == (1, 1)

    assert played(engine) == [
        ("Finished", 1, 200),
        ("Computed", 2, 300),
        ("FirstToken", 2, 300),
        ("Finished", 2, 300),
    ]


def test_a_cancelled_request_lets_the_next_one_begin() -> None:
    """Whether it waits, is computed or is answered, nothing more comes of it."""
    engine: Engine = EngineCompute(RULES, Cache())
    for number in (1, 2, 3, 4):
        engine.submit(job(number, 800, 10), 0)
    engine.advance(160 * NS_PER_MS)

    engine.cancel(1, 160 * NS_PER_MS)
    engine.cancel(2, 160 * NS_PER_MS)
    engine.cancel(4, 160 * NS_PER_MS)

    assert played(engine) == [
        ("Computed", 3, 260),
        ("FirstToken", 3, 310),
        ("Finished", 3, 490),
    ]


def test_an_engine_that_ends_loses_everything() -> None:
    """All requests are handed back, the oldest first, and nothing is due."""
    engine: Engine = EngineCompute(RULES, Cache())
    for number in (1, 2, 3):
        engine.submit(job(number, 800, 10), 0)
    engine.advance(160 * NS_PER_MS)

    assert [lost.number for lost in engine.lose_all()] == [1, 2, 3]
    assert engine.due_ns is None
    assert (engine.waiting, engine.running) == (0, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 500), st.integers(1, 3_000), st.integers(0, 20)), max_size=20
    ),
    st.integers(1, 4),
)
def test_every_request_goes_through_all_steps_in_order(
    arrivals: list[tuple[int, int, int]], concurrency_max: int
) -> None:
    """Whatever arrives, time never goes back, and nobody exceeds the limit or is forgotten."""
    rules = ComputeRules(
        prefill_tokens_per_s=8_000,
        base_ns=NS_PER_MS,
        decode_token_ns=NS_PER_MS,
        concurrency_max=concurrency_max,
    )
    engine: Engine = EngineCompute(rules, Cache(16))
    steps: list[tuple[int, type, int]] = []

    def note(until_ns: int) -> None:
        while (due_ns := engine.due_ns) is not None and due_ns <= until_ns:
            steps.extend((s.at_ns, type(s), s.job.number) for s in engine.advance(due_ns))
            assert engine.running <= concurrency_max

    for number, (at_ms, prompt_tokens, output_tokens) in enumerate(sorted(arrivals)):
        note(at_ms * NS_PER_MS)
        engine.submit(job(number, prompt_tokens, output_tokens), at_ms * NS_PER_MS)
    note(10**15)

    assert [at for at, _, _ in steps] == sorted(at for at, _, _ in steps)
    for number in range(len(arrivals)):
        assert [kind for _, kind, whose in steps if whose == number] == [
            Computed,
            FirstToken,
            Finished,
        ]
