"""What does not fit the wire is refused alike by every client, in this process and over gRPC."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from both_clients import DRIVERS

from inferencecache.app.server import Server, running_server
from inferencecache.client import (
    CacheUpdate,
    FailOpenCause,
    HeldPrefix,
    LookupQuery,
    LookupResult,
    ReasonCode,
    ReplicaRef,
    StatsReport,
)
from inferencecache.client.in_process import InProcessClient
from inferencecache.errors import InvalidRequestError
from inferencecache.settings.throwaway import throwaway_server_settings

PATIENT = 10_000
HALF_A_PAIR = "\ud800"
QUERY = LookupQuery(
    tenant_id="t", model_id="m", hash_scheme="vllm", token_ids=range(64)
).fingerprinted(16)
UPDATE = CacheUpdate(
    replica=ReplicaRef("t", "m", "r"),
    hash_scheme="vllm",
    prefixes=[HeldPrefix(prefix_hash=b"p", token_count=64)],
)
BAD_QUERIES = [
    {"prompt_text": HALF_A_PAIR},
    {"tenant_id": HALF_A_PAIR},
    {"model_id": 5},
    {"adapter_id": b"\xff"},
    {"block_token_counts": [None]},
    {"block_token_counts": [2**31]},
    {"block_token_counts": [-(2**31) - 1]},
    {"block_token_counts": [16.0]},
    {"block_token_counts": 16},
    {"block_hashes": ["text"]},
    {"block_hashes": [bytearray(b"x")]},
    {"prefix_hash": "text"},
    {"prefix_token_count": 2**31},
    {"prefix_token_count": float("nan")},
    {"token_ids": [-1]},
    {"token_ids": [2**32]},
    {"token_ids": [1 << 80]},
    {"token_ids": ["1"]},
    {"ttft_ms": 2**40},
    {"tbt_ms": "soon"},
]
BAD_UPDATES = [
    {"prefixes": [HeldPrefix(prefix_hash=b"p", token_count=2**31)]},
    {"prefixes": [HeldPrefix(prefix_hash=b"p", token_count=1.5)]},
    {"prefixes": [HeldPrefix(block_hashes=[b"p"], block_token_counts=[2**31])]},
    {"prefixes": [HeldPrefix(block_hashes=[b"p"], block_token_counts=[None])]},
    {"prefixes": [HeldPrefix(block_hashes=["p"], block_token_counts=[16])]},
    {"prefixes": [HeldPrefix(prefix_hash=b"p", tier=2**31)]},
    {"prefixes": [HeldPrefix(prefix_hash=b"p", adapter_id=HALF_A_PAIR)]},
    {"hash_scheme": HALF_A_PAIR},
    {"replica": ReplicaRef("t", "m", 5)},
    {"stats": StatsReport(t2_query_tokens=2**63)},
    {"stats": StatsReport(cache_memory_bytes=1.5)},
    {"timestamp_ns": 2**80},
]


class Local:
    """The client without a server, driven like the others."""

    def __init__(self, server: Server) -> None:
        self._client = InProcessClient(server.plane)

    def __getattr__(self, name: str) -> object:
        if name == "reporter":
            return lambda: Awaited(self._client.reporter())
        return getattr(Awaited(self._client), name)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class Awaited:
    """The methods of an object of this process, to be awaited."""

    def __init__(self, wrapped: object) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> object:
        async def call(*args: object, **options: object) -> object:
            return getattr(self._wrapped, name)(*args, **options)

        return call


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Run a real server on free ports."""
    async with running_server(throwaway_server_settings()) as running:
        yield running


@pytest.fixture(params=[*sorted(DRIVERS), "in process"])
async def client(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[object]:
    """Return a client of each kind, for the server."""
    made = DRIVERS.get(request.param)
    opened = made(server.grpc_target) if made is not None else Local(server)
    yield opened
    await opened.close()


async def test_queries_that_do_not_fit_get_no_hint(client: object) -> None:
    """A result with the cause, never an exception."""
    for changes in BAD_QUERIES:
        result: LookupResult = await client.lookup(replace(QUERY, **changes), deadline_ms=PATIENT)
        assert (result.reason_code, result.cause) == (
            ReasonCode.NO_HINT,
            FailOpenCause.INVALID_QUERY,
        ), changes
        assert result.hints == ()
        assert result.detail


@pytest.mark.parametrize(
    ("deadline_ms", "cause"),
    [
        (float("inf"), FailOpenCause.INVALID_QUERY),
        (float("nan"), FailOpenCause.INVALID_QUERY),
        (1e300, FailOpenCause.INVALID_QUERY),
        (10**30, FailOpenCause.INVALID_QUERY),
        (float("-inf"), FailOpenCause.DEADLINE),
        (0, FailOpenCause.DEADLINE),
        (1e12, None),
    ],
)
async def test_deadlines_that_are_none(
    client: object, deadline_ms: float, cause: FailOpenCause | None
) -> None:
    """No time at all is a timeout; a time that no clock shows is a bad query."""
    result = await client.lookup(QUERY, deadline_ms=deadline_ms)
    assert result.cause is cause


async def test_reports_that_do_not_fit_are_refused(client: object, server: Server) -> None:
    """The caller is told, and nothing of it arrives."""
    reporter = client.reporter()
    for changes in BAD_UPDATES:
        with pytest.raises(InvalidRequestError):
            await reporter.report(replace(UPDATE, **changes))
    for replica in (ReplicaRef("t", "m", HALF_A_PAIR), ReplicaRef(5, "m", "r")):
        with pytest.raises(InvalidRequestError):
            await reporter.clear(replica)
        with pytest.raises(InvalidRequestError):
            await reporter.evict(replica, [b"p"])
    with pytest.raises(InvalidRequestError):
        await reporter.evict(UPDATE.replica, ["text"])
    assert server.plane.index.counters.updates == 0
    await reporter.report(UPDATE)
    await reporter.flush()
    assert server.plane.index.entries == 1


async def test_what_the_index_drops_is_dropped_alike(client: object, server: Server) -> None:
    """Values that fit the wire and mean nothing cost themselves alone, and are counted."""
    prefixes = [
        HeldPrefix(prefix_hash=b"p", token_count=-1),
        HeldPrefix(prefix_hash=b"", token_count=1),
        HeldPrefix(block_hashes=[b"a", b"b"], block_token_counts=[16]),
        HeldPrefix(prefix_hash=b"q", token_count=16, tier=-5),
    ]
    reporter = client.reporter()
    await reporter.report(replace(UPDATE, prefixes=prefixes))
    await reporter.flush()
    assert {reason.value: n for reason, n in server.plane.index.counters.drops.items() if n} == {
        "negative_count": 1,
        "empty_hash": 1,
        "malformed_chain": 1,
    }
    assert server.plane.index.entries == 1
