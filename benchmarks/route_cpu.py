"""Server CPU time of LookupRoute above that of an empty handler of the same server.

Workload: 512 blocks, held by 4 replicas of 5, so that there is an answer; one client process sends
the same bytes to LookupRoute and to an empty handler, one call at a time, in alternating rounds.
CPU time is the kernel's, over all threads of the server. Seed: ``workload.SEED``.
Budget: 10 rounds of 500 calls each.
"""

import statistics
from collections.abc import Callable, Iterator

import grpc

from benchmarks.measure import NS_PER_US, elapsed_us, require
from benchmarks.messages import (
    EMPTY_CALL,
    LOOKUP_ROUTE,
    REPORT_CACHE_STATE,
    as_bytes,
    chain_bytes,
    lookup_bytes,
)
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from benchmarks.serving import serving
from benchmarks.workload import chains
from inferencecache.v1alpha1.inferencecache_pb2 import LookupRouteResponse

HOLDERS = 4
Call = Callable[[bytes], bytes]


def run(options: Options) -> Iterator[Row]:
    """Yield CPU time and latency of a lookup and of an empty call."""
    rounds, calls = (4, 200) if options.quick else (10, 500)
    with serving(options.blocks_max) as server, grpc.insecure_channel(server.target) as channel:
        request = _prepare(channel)
        lookup = channel.unary_unary(LOOKUP_ROUTE, as_bytes, as_bytes)
        empty = channel.unary_unary(EMPTY_CALL, as_bytes, as_bytes)
        response = LookupRouteResponse.FromString(lookup(request))
        require(len(response.replica_scores) == HOLDERS, "every holder is in the answer")
        cpu: dict[Call, list[float]] = {lookup: [], empty: []}
        latency: dict[Call, list[float]] = {lookup: [], empty: []}
        for _ in range(rounds):
            for call in (empty, lookup):
                before_ns = server.cpu_ns()
                latency[call] += [elapsed_us(lambda: call(request)) for _ in range(calls)]  # noqa: B023 - called at once
                cpu[call].append((server.cpu_ns() - before_ns) / calls / NS_PER_US)
    yield _row(cpu[lookup], cpu[empty])
    yield Row(
        what="LookupRoute, 512 blocks, 4 holders: latency, one at a time",
        unit="us",
        value=statistics.median(latency[lookup]),
        note=f"an empty handler: {statistics.median(latency[empty]):.0f} us",
    )


def _row(lookup_us: list[float], empty_us: list[float]) -> Row:
    over_us = [lookup - empty for lookup, empty in zip(lookup_us, empty_us, strict=True)]
    return Row(
        what="LookupRoute, 512 blocks, 4 holders: CPU over an empty handler",
        unit="us",
        value=statistics.median(over_us),
        bound=Bound.AT_MOST,
        target=60,
        note=f"{statistics.median(lookup_us):.0f} us against {statistics.median(empty_us):.0f} us",
    )


def _prepare(channel: grpc.Channel) -> bytes:
    chain, other = chains(2)
    updates = [chain_bytes(f"replica-{number}", chain) for number in range(HOLDERS)]
    updates.append(chain_bytes(f"replica-{HOLDERS}", other))
    channel.stream_unary(REPORT_CACHE_STATE, as_bytes, as_bytes)(iter(updates))
    return lookup_bytes(chain)
