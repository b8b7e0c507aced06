"""Generated traffic for the fake engine: conversations that grow, over and over.

The same seed gives the same steps. Every prompt starts with one of a few shared prefixes, so that
prompts of one family hit each other's blocks and those of others do not.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inferencecache.fingerprint import content_hashes
from inferencecache.simulation.engine_script import Serve

_TOKEN_SPAN: Final = 2**31
_TAIL_BLOCKS_MAX: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRules:
    """What the traffic looks like.

    Attributes:
        seed: Picks prompts; equal seeds give equal traffic.
        families: Different shared prefixes.
        shared_blocks: Blocks in a shared prefix.
        block_size_tokens: Tokens per block of the prompts. That of the engine or of the index,
            whichever is larger: of less, there is no key.
        ranks: Ranks that take turns.
    """

    seed: int = 0
    families: int = 8
    shared_blocks: int = 8
    block_size_tokens: int = 16
    ranks: int = 1


def draw(seed: int, number: int, below: int) -> int:
    """Return a number that looks random and depends on *seed* and *number* alone.

    Args:
        seed: 0 to 2**32 - 1.
        number: 0 to 2**32 - 1.
        below: Size of the range, >= 1.
    """
    return content_hashes([seed, number], 2)[0] % below


def traffic(rules: TrafficRules) -> Iterator[Serve]:
    """Yield prompts to serve, without end."""
    number = 0
    while True:
        yield prompt_step(rules, number)
        number += 1


def prompt_step(rules: TrafficRules, number: int) -> Serve:
    """Return the step for prompt *number* of the traffic."""
    family = draw(rules.seed, 3 * number, rules.families)
    tail_blocks = 1 + draw(rules.seed, 3 * number + 1, _TAIL_BLOCKS_MAX)
    question = draw(rules.seed, 3 * number + 2, _TOKEN_SPAN)
    shared = rules.shared_blocks * rules.block_size_tokens
    tail = tail_blocks * rules.block_size_tokens
    return Serve(
        rank=number % rules.ranks,
        start=_TOKEN_SPAN + family * shared,
        count=shared,
        then=[(question + place) % _TOKEN_SPAN for place in range(tail)],
    )
