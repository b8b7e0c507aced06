"""What a producer says about itself to code in the same process."""

from dataclasses import dataclass

from inferencecache.events import SyncState


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStats:
    """One data-parallel rank of one engine.

    Attributes:
        replica_id: The replica it belongs to.
        rank: The rank.
        state: How far it has come.
        expected: Number of the next batch; None until the first is known.
        applied: Batches taken in.
        is_incomplete: Earlier batches were never seen.
        duplicates: Live messages seen before.
        restarts: Restarts of the engine.
        gaps: Times a number was found missing.
        final_gaps: Times missing numbers were given up.
    """

    replica_id: str
    rank: int
    state: SyncState
    expected: int | None
    applied: int
    is_incomplete: bool
    duplicates: int
    restarts: int
    gaps: int
    final_gaps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStats:
    """One server.

    Attributes:
        target: Its address.
        is_connected: Whether it is reachable.
        pending_keys: Changes it has not been told.
        delivered_keys: Keys it acknowledged as stored.
        evicted_keys: Keys it acknowledged as evicted.
        failures: Deliveries that had to be repeated.
        resyncs: Times it was told everything again.
    """

    target: str
    is_connected: bool
    pending_keys: int
    delivered_keys: int
    evicted_keys: int
    failures: int
    resyncs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerStats:
    """A producer at one moment.

    Attributes:
        sources: The ranks it listens to, engine by engine.
        servers: The servers it tells.
    """

    sources: tuple[SourceStats, ...]
    servers: tuple[ServerStats, ...]
