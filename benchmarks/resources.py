"""Resource files: loading many, what the event loop feels of it, and what a lookup pays.

Workload: 1,000 CachePolicy and 10,000 CacheTenant objects with every field set, in one file, and
with each object in a file of its own. A *pause* is the time between two turns of a task that sleeps
a millisecond at a time on the loop that loads: what a lookup would have to wait. Seed: none.
Budget: one load each, and 1 s per lookup timing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter_ns, process_time_ns, thread_time_ns

import uvloop

from benchmarks.measure import NS_PER_MS, NS_PER_S, median_us, require
from benchmarks.options import Options
from benchmarks.row import Bound, Row
from inferencecache.app.resources import FilePolicies, ResourceParts, Resources
from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.policy import PolicySnapshot, PolicyStore
from inferencecache.service import CachePlane, PlaneParts, RouteRequest
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock

_POLICIES, _TENANTS = 1_000, 10_000
_CHAIN = [n.to_bytes(8) for n in range(64)]
_LOAD_S_MAX = 3.0
_PAUSE_MS_MAX = 50.0
_TURN_S = 0.001


def run(options: Options) -> Iterator[Row]:
    """Yield the rows of the resource files."""
    share = 10 if options.quick else 1
    counts = (_POLICIES // share, _TENANTS // share)
    with TemporaryDirectory() as directory:
        yield from uvloop.run(_one_file(Path(directory), counts))
    with TemporaryDirectory() as directory:
        yield from uvloop.run(_many_files(Path(directory), counts))
    yield _lookup(counts, options.budget_s)


async def _one_file(directory: Path, counts: tuple[int, int]) -> list[Row]:
    """Measure a first load, and a reload in which every object has changed."""
    resources = _resources(directory)
    path = directory / "all.yaml"
    path.write_text("---\n".join(_documents(counts, 30)))
    size = f"{counts[0]:,} policies, {counts[1]:,} tenants"
    rows = _rows(f"{size} in one file", await _watched(resources.look))
    path.write_text("---\n".join(_documents(counts, 31)))
    rows += _rows("the same, every object changed", await _watched(resources.look))
    require(len(resources.load.objects) == sum(counts), "every object is in force")
    return rows


async def _many_files(directory: Path, counts: tuple[int, int]) -> list[Row]:
    """Measure a first load, and a reload in which one file of many has changed."""
    resources = _resources(directory)
    for number, text in enumerate(_documents(counts, 30)):
        (directory / f"{number:05}.yaml").write_text(text)
    rows = _rows("the same, a file for each object", await _watched(resources.look))
    (directory / "00000.yaml").write_text(next(iter(_documents(counts, 31))))
    rows += _rows("one file of these changed", await _watched(resources.look))
    require(len(resources.load.objects) == sum(counts), "every object is in force")
    return rows


def _lookup(counts: tuple[int, int], budget_s: float) -> Row:
    """Measure a lookup of 64 blocks with all policies and without."""
    with_all, without = _plane(), _plane()
    with TemporaryDirectory() as directory:
        (Path(directory) / "all.yaml").write_text("---\n".join(_documents(counts, 30)))
        uvloop.run(_loaded(_resources(Path(directory), with_all)))
    without.set_policy(PolicySnapshot())
    asked = RouteRequest(
        tenant_id="team-00000",
        model_id="m",
        hash_scheme="s",
        block_hashes=_CHAIN,
        block_token_counts=[16] * len(_CHAIN),
    )
    return Row(
        what="lookup of 64 blocks with all policies in force",
        unit="us",
        value=median_us(lambda: with_all.lookup_route(asked), budget_s),
        naive=median_us(lambda: without.lookup_route(asked), budget_s),
        naive_ratio_max=1.1,
        note="naive: the same without any policy",
    )


async def _loaded(resources: Resources) -> None:
    await resources.look()


@dataclass(kw_only=True)
class _Watched:
    """What a piece of work took, and the longest pauses of the loop meanwhile, in nanoseconds."""

    took: int = 0
    processor: int = 0
    pause: int = 0
    processor_pause: int = 0


async def _watched(work: Callable[[], Awaitable[object]]) -> _Watched:
    """Do *work* beside a task that wakes up all the time."""
    seen = _Watched()
    watching = asyncio.create_task(_watch(seen))
    await asyncio.sleep(0)
    started, processor_started = perf_counter_ns(), process_time_ns()
    await work()
    seen.took = perf_counter_ns() - started
    seen.processor = process_time_ns() - processor_started
    await asyncio.sleep(0)
    watching.cancel()
    return seen


async def _watch(seen: _Watched) -> None:
    """Keep the longest time between two turns, by the clock and by what the loop has worked."""
    before, processor_before = perf_counter_ns(), thread_time_ns()
    while True:
        await asyncio.sleep(_TURN_S)
        now, processor_now = perf_counter_ns(), thread_time_ns()
        seen.pause = max(seen.pause, now - before)
        seen.processor_pause = max(seen.processor_pause, processor_now - processor_before)
        before, processor_before = now, processor_now


def _rows(what: str, seen: _Watched) -> list[Row]:
    return [
        Row(
            what=f"resources: {what}",
            unit="s",
            value=seen.took / NS_PER_S,
            bound=Bound.AT_MOST,
            target=_LOAD_S_MAX,
            note=f"{seen.processor / NS_PER_S:.2f} s of processor time, all threads",
        ),
        Row(
            what="  longest pause of the event loop meanwhile",
            unit="ms",
            value=seen.pause / NS_PER_MS,
            bound=Bound.AT_MOST,
            target=_PAUSE_MS_MAX,
            note=f"longest by the loop's own processor time "
            f"{seen.processor_pause / NS_PER_MS:.1f} ms",
        ),
    ]


def _resources(directory: Path, plane: CachePlane | None = None) -> Resources:
    settings = ResourceSettings(directory=str(directory))
    return Resources(
        ResourceParts(
            settings=settings,
            consumers=(FilePolicies(plane or _plane(), PolicySettings()),),
            clock=SystemClock(),
            log=StructuredLog(),
        )
    )


def _plane() -> CachePlane:
    """Return a plane with one replica of two that holds the chain."""
    store = PolicyStore(PolicySettings(), default_ttl_ns=IndexSettings().ttl_ns)
    index = PrefixIndex(IndexSettings(), store)
    plane = CachePlane(PlaneParts(index=index, policies=store, clock=SystemClock()))
    for replica_id, held in (("a", _CHAIN), ("b", [b"other"])):
        update = StateUpdate(
            tenant_id="team-00000", model_id="m", replica_id=replica_id, hash_scheme="s"
        )
        update.add_chain(held, [16] * len(held))
        plane.report(update)
    return plane


def _documents(counts: tuple[int, int], minutes: int) -> Iterator[str]:
    """Yield one document per object, with every field set."""
    policies, tenants = counts
    for number in range(policies):
        yield _POLICY.format(number=number, minutes=minutes)
    for number in range(tenants):
        yield _TENANT.format(number=number, entries=minutes * 1_000_000)


_POLICY = """\
apiVersion: inferencecache.io/v1alpha1
kind: CachePolicy
metadata:
  name: default
  namespace: team-{number:05}
spec:
  eviction: LRU
  evictionTTL: {minutes}m
  minimumPrefixTokens: 0
  minimumMatchedTokens: 64
  routingFloorScore: "0.1"
  lookupTimeoutMs: 0
  strategy:
    enableChainMatching: true
    requireChain: false
    enableTenantHot: true
  affinityRouting: Enabled
"""
_TENANT = """\
apiVersion: inferencecache.io/v1alpha1
kind: CacheTenant
metadata:
  name: tenant
  namespace: team-{number:05}
spec:
  tenantID: team-{number:05}
  quota:
    maxIndexEntries: {entries}
  isolationMode: Fairness
"""
