"""Small rules of input resolution."""

import pytest

from inferencecache.clock import ManualClock
from inferencecache.service.resolve import (
    FailOpen,
    InputResolver,
    ResolvedInput,
    chain_fault,
    effective_tokens,
    has_valid_chain,
    will_tokenize,
)
from inferencecache.service.route_request import RouteRequest
from inferencecache.settings.lookup import LookupSettings
from inferencecache.types import INT32_MAX


@pytest.mark.parametrize(
    ("hashes", "counts", "fault"),
    [
        ([], [], None),
        ([b"a"], [16], None),
        ([b"a", b"b"], [16, 0], None),
        ([b"a"], [], FailOpen.CHAIN_LENGTHS_DIFFER),
        ([], [16], FailOpen.CHAIN_LENGTHS_DIFFER),
        ([b"a", b"b"], [16, -1], FailOpen.CHAIN_COUNT_NEGATIVE),
        ([b"a", b"b"], [-1, -1], FailOpen.CHAIN_COUNT_NEGATIVE),
        ([b"a", b"b"], [-1, 16], FailOpen.CHAIN_COUNT_NEGATIVE),
    ],
)
def test_chain_faults(hashes: list[bytes], counts: list[int], fault: FailOpen | None) -> None:
    """Lengths must agree and no count may be negative; 0 is a count like any other."""
    assert chain_fault(hashes, counts) is fault


@pytest.mark.parametrize(
    ("counts", "exact", "tokens"),
    [([16, 32], 999, 48), ([], 128, 128), ([48, 48], 0, 96), ([INT32_MAX, 1], 0, INT32_MAX)],
)
def test_chain_tokens_outweigh_the_exact_claim(counts: list[int], exact: int, tokens: int) -> None:
    """A chain says how long the prompt is; without one the claim does; sums saturate."""
    resolved = ResolvedInput([b"h"] * len(counts), counts, b"p", exact)

    assert effective_tokens(resolved) == tokens


def test_valid_chain_needs_hashes() -> None:
    """No arrays at all are no chain."""
    assert not has_valid_chain(RouteRequest(prefix_hash=b"p"))
    assert has_valid_chain(RouteRequest(block_hashes=[b"a"], block_token_counts=[16]))


@pytest.mark.parametrize(
    ("request_", "chain_enabled", "expected"),
    [
        (RouteRequest(prompt_text="x"), True, True),
        (RouteRequest(), True, False),
        (RouteRequest(prompt_text="x", prefix_hash=b"p"), True, False),
        (RouteRequest(prompt_text="x", token_ids=[1]), True, False),
        (RouteRequest(prompt_text="x", block_hashes=[b"a"]), True, False),
        (RouteRequest(prompt_text="x", block_hashes=[b"a"]), False, True),
    ],
)
def test_prompt_counts_only_without_anything_better(
    request_: RouteRequest,
    *,
    chain_enabled: bool,
    expected: bool,
) -> None:
    """The prompt text is the last resort."""
    assert will_tokenize(request_, chain_enabled=chain_enabled) is expected


@pytest.mark.parametrize("text", ["\ud800", "hello \udfff", "x" * 900 + "\udc00"])
def test_half_a_surrogate_pair_is_no_prompt(text: str) -> None:
    """Text that has no bytes fails open; a gateway in this process may hold such a string."""
    resolver = InputResolver(LookupSettings(), ManualClock())
    steps = resolver.derive_steps(RouteRequest(prompt_text=text), None, chain_enabled=True)
    with pytest.raises(StopIteration) as finished:
        next(steps)
    assert finished.value.value.fail_open is FailOpen.PROMPT_NOT_UNICODE
