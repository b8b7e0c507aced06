"""The candidates of an explanation, put into rows when somebody reads them.

Every Pick is explained and hardly any explanation is read. So what is kept is what the Pick had at
hand: lists of values that never change, and nothing of the fleet, which may be another one by then.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Final, overload

import msgspec

from inferencecache.picker.choosing.candidate_facts import CandidateFacts
from inferencecache.picker.choosing.survey import Barrier
from inferencecache.picker.explanation import ExplainedCandidate as Row

_NO_BARRIER: Final = Barrier.NONE.value


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of candidates, those that were ranked first.

    Attributes:
        facts: Of all of them.
        tiers: Likewise.
        barriers: What keeps them away; None where nothing keeps away anybody.
        scores: Of those that were ranked, in their order.
    """

    facts: CandidateFacts
    tiers: list[str]
    barriers: list[str] | None
    scores: list[float]


class ExplainedRows(Sequence[Row]):
    """A row for each candidate.

    Args:
        columns: What is known of them.
    """

    __slots__ = ("_columns",)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def __eq__(self, other: object) -> bool:
        """Return whether *other* says the same of the same candidates.

        Complexity: O(candidates).
        """
        return isinstance(other, ExplainedRows) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment] # nobody looks one up

    def __len__(self) -> int:
        return len(self._columns.tiers)

    def __iter__(self) -> Iterator[Row]:
        columns, facts = self._columns, self._columns.facts
        matches, queues = facts.matched(), facts.queues()
        ranked = range(1, len(columns.scores) + 1)
        return map(
            Row,
            [card.name for card in facts.cards],
            columns.tiers,
            [card.model for card in facts.cards],
            columns.barriers or repeat(_NO_BARRIER),
            [load.requests for load in facts.loads],
            [load.prefill_tokens for load in facts.loads],
            [queue.requests for queue in queues],
            [queue.waiting for queue in queues],
            facts.prompts_tokens(),
            [match.matched_tokens for match in matches],
            [match.source for match in matches],
            facts.estimates_ms(),
            facts.predictions_ms or repeat(None),
            chain(ranked, repeat(0)),
            chain(columns.scores, repeat(0.0)),
        )

    @overload
    def __getitem__(self, at: int) -> Row: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Row]: ...

    def __getitem__(self, at: int | slice) -> Row | Sequence[Row]:
        """Return one row, or several.

        Complexity: O(candidates).
        """
        return tuple(self)[at]
