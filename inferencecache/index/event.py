"""Events a replica publishes between its reports."""

from dataclasses import dataclass
from enum import StrEnum


class EventType(StrEnum):
    """Events that change the index; PREFIX_ADDED names no scheme and therefore does not."""

    PREFIX_EVICTED = "PREFIX_EVICTED"
    REPLICA_UPDATED = "REPLICA_UPDATED"
    ALL_CLEARED = "ALL_CLEARED"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEvent:
    """One event.

    Attributes:
        type: What happened.
        tenant_id: Whose replica.
        model_id: The model.
        replica_id: The replica.
        prefix_hash: The block, for PREFIX_EVICTED.
        timestamp_ns: Unix time, 0 for now.
        adapter_id: For PREFIX_EVICTED: one adapter, or empty for all of them.
    """

    type: EventType
    tenant_id: str
    model_id: str
    replica_id: str
    prefix_hash: bytes = b""
    timestamp_ns: int = 0
    adapter_id: str = ""
