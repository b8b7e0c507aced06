"""What LookupRoute answers."""

from collections.abc import Sequence
from typing import NamedTuple

from inferencecache.ranking import RankedReplica
from inferencecache.types import ReasonCode


class RouteAnswer(NamedTuple):
    """A reason and the replicas it speaks for; an answer without replicas is always valid.

    Attributes:
        reason_code: Why the answer is what it is.
        replicas: Best first; empty unless the reason is a hint.
        adapter_id: The adapter asked for, once the index was consulted in it; else empty.
        token_ids: The prompt's tokens, only where the server tokenized it.
        lookup_latency_us: Time inside LookupRoute, in microseconds.
    """

    reason_code: ReasonCode
    replicas: Sequence[RankedReplica] = ()
    adapter_id: str = ""
    token_ids: Sequence[int] = ()
    lookup_latency_us: int = 0

    @property
    def hint_used(self) -> bool:
        """Whether the answer names any replica."""
        return bool(self.replicas)
