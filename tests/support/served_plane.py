"""A cache plane behind a real gRPC listener on a free port, with a clock that stands still."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from inferencecache.clock import NS_PER_S, Clock, ManualClock
from inferencecache.index import PrefixIndex
from inferencecache.policy import CachePolicy, PolicySnapshot, PolicyStore
from inferencecache.service import CachePlane, PlaneParts, Tokenizer
from inferencecache.service.plane import IgnoreReplicas, ReplicaObserver
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.transport.grpc_server import GrpcListener, GrpcParts
from inferencecache.types import ReasonCode
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as pb_grpc

NOW_NS = 1_767_225_600 * NS_PER_S
TENANT, MODEL, SCHEME = "t1", "m1", "vllm"
SERVICE_NAME = "inferencecache.v1alpha1.InferenceCache"


class Recorder:
    """Counts what the server tells its observers, and keeps what it logs."""

    def __init__(self) -> None:
        self.lookups: Counter[tuple[str, ReasonCode, bool]] = Counter()
        self.latencies_ns: list[int] = []
        self.updates = 0
        self.entries = 0
        self.lags_ns: list[int | None] = []
        self.events: Counter[str] = Counter()
        self.unparsable: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.lines: list[tuple[str, dict[str, object]]] = []
        self.changed = asyncio.Event()

    def lookup_finished(
        self, model_id: str, reason_code: ReasonCode, duration_ns: int, *, hint_used: bool
    ) -> None:
        """Count one lookup."""
        self.lookups[model_id, reason_code, hint_used] += 1
        self.latencies_ns.append(duration_ns)
        self.changed.set()

    def update_received(self, entries: int, lag_ns: int | None) -> None:
        """Count one update."""
        self.lags_ns.append(lag_ns)
        self.updates += 1
        self.entries += entries
        self.changed.set()

    def event_received(self, kind: str) -> None:
        """Count one event."""
        self.events[kind] += 1

    def message_unparsable(self, method: str) -> None:
        """Count one message that did not parse."""
        self.unparsable[method] += 1
        self.changed.set()

    def handler_failed(self, method: str) -> None:
        """Count one unexpected exception."""
        self.failures[method] += 1

    def debug(self, event: str, **fields: object) -> None:
        """Keep one line."""
        self.lines.append((event, fields))

    info = warning = error = debug

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something was counted that makes *holds* true."""
        async with asyncio.timeout(30):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


def new_plane(
    *,
    clock: Clock | None = None,
    recorder: Recorder | None = None,
    index: IndexSettings | None = None,
    lookup: LookupSettings | None = None,
    tokenizer: Tokenizer | None = None,
    replicas: ReplicaObserver | None = None,
) -> CachePlane:
    """Return a plane; its clock stands still unless one is given."""
    index_settings = index or IndexSettings()
    policies = PolicyStore(PolicySettings(), index_settings.ttl_ns)
    observed = {} if recorder is None else {"observer": recorder}
    return CachePlane(
        PlaneParts(
            index=PrefixIndex(index_settings, policies),
            policies=policies,
            clock=clock or ManualClock(NOW_NS),
            lookup=lookup or LookupSettings(),
            tokenizer=tokenizer,
            replicas=IgnoreReplicas() if replicas is None else replicas,
            **observed,
        )
    )


def set_policy(plane: CachePlane, **members: Any) -> None:
    """Give the tenant a policy; what is not named is as without one, the floor of 64 included."""
    members = {"minimum_matched_tokens": 64, **members}
    plane.set_policy(PolicySnapshot(policies=(CachePolicy(namespace=TENANT, **members),)))


@dataclass(kw_only=True)
class ServedPlane:
    """A running server and a client's channel to it."""

    plane: CachePlane
    recorder: Recorder
    listener: GrpcListener
    target: str
    channel: grpc.aio.Channel
    stub: Any = field(init=False)

    def __post_init__(self) -> None:
        self.stub = pb_grpc.InferenceCacheStub(self.channel)

    async def report(self, *updates: pb.CacheStateUpdate) -> pb.Ack:
        """Send *updates* as one stream and half-close."""
        return await self.stub.ReportCacheState(iter(updates))

    async def look_up(self, **fields: Any) -> pb.LookupRouteResponse:
        """Ask LookupRoute in the usual scope."""
        return await self.stub.LookupRoute(lookup(**fields))

    async def send_bytes(self, method: str, data: bytes) -> bytes:
        """Call a unary *method* with bytes as they are."""
        return await self.channel.unary_unary(f"/{SERVICE_NAME}/{method}")(data)


@asynccontextmanager
async def serve(
    plane: CachePlane | None = None,
    settings: GrpcSettings | None = None,
    recorder: Recorder | None = None,
) -> AsyncIterator[ServedPlane]:
    """Serve *plane*, or a new one, for the length of the block."""
    recorder = recorder or Recorder()
    plane = plane or new_plane(recorder=recorder)
    listener = GrpcListener(
        GrpcParts(
            plane=plane,
            observer=recorder,
            log=recorder,
            settings=settings or GrpcSettings(bind_address="127.0.0.1:0"),
        )
    )
    address = await listener.start()
    try:
        options = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1))
        async with grpc.aio.insecure_channel(str(address), options=options) as channel:
            yield ServedPlane(
                plane=plane,
                recorder=recorder,
                listener=listener,
                target=str(address),
                channel=channel,
            )
    finally:
        await listener.stop(0)


def keys(count: int, salt: int = 0) -> list[bytes]:
    """Return *count* distinct hashes of eight bytes."""
    return [(salt << 32 | number).to_bytes(8, "big") for number in range(1, count + 1)]


def chain_entry(hashes: list[bytes], tokens: int = 16, **fields: Any) -> pb.PrefixEntry:
    """Return a chain of blocks of *tokens* each."""
    return pb.PrefixEntry(block_hashes=hashes, block_token_counts=[tokens] * len(hashes), **fields)


def exact_entry(prefix_hash: bytes, token_count: int, **fields: Any) -> pb.PrefixEntry:
    """Return one prefix under its own hash."""
    return pb.PrefixEntry(prefix_hash=prefix_hash, token_count=token_count, **fields)


def update(replica_id: str, *prefixes: pb.PrefixEntry, **fields: Any) -> pb.CacheStateUpdate:
    """Return an update in the usual scope."""
    scope = {"tenant_id": TENANT, "model_id": MODEL, "hash_scheme": SCHEME}
    return pb.CacheStateUpdate(replica_id=replica_id, prefixes=prefixes, **{**scope, **fields})


def lookup(**fields: Any) -> pb.LookupRouteRequest:
    """Return a lookup in the usual scope; ``chain=hashes`` makes blocks of 16 tokens."""
    scope = {"tenant_id": TENANT, "model_id": MODEL, "hash_scheme": SCHEME}
    chain = fields.pop("chain", None)
    if chain is not None:
        fields |= {"block_hashes": chain, "block_token_counts": [16] * len(chain)}
    return pb.LookupRouteRequest(**{**scope, **fields})
