"""A whole replay over real gRPC, in one process."""

from pathlib import Path

import grpc
import pytest
from replay_traces import conversations, hand_trace
from scripted_cache_server import Answer, Context, abort, answer, scripted_server

from inferencecache.app.replay import replay, run_replay
from inferencecache.app.replay_input import load_trace
from inferencecache.app.replay_plane import HASH_SCHEME, ServerLostError
from inferencecache.app.replay_server import throwaway_settings
from inferencecache.app.server import running_server
from inferencecache.clock import ManualClock
from inferencecache.errors import ConfigError
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import Experiment, ReplaySummary
from inferencecache.types import PROBE_TENANT_ID, PartitionKey
from inferencecache.v1alpha1 import inferencecache_pb2 as pb


class Spectator:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.target = ""
        self.own_server: bool | None = None
        self.experiment: Experiment | None = None
        self.played_requests = 0

    def started(self, target: str, *, is_own_server: bool) -> None:
        """Note the server."""
        self.target, self.own_server = target, is_own_server

    def played(self, experiment: Experiment, requests: int) -> None:
        """Note the progress."""
        self.experiment, self.played_requests = experiment, requests


async def play(trace: Path, settings: ReplaySettings) -> ReplaySummary:
    """Return the summary of a replay; its clock stands still, so no number depends on time."""
    return await replay(load_trace(trace, 0), settings, Spectator(), ManualClock())


async def test_numbers_worked_by_hand(tmp_path: Path) -> None:
    """Two prompts find two blocks each where the first one went; the rest is as documented."""
    trace = load_trace(hand_trace(tmp_path / "t.jsonl"), 0)
    spectator = Spectator()
    settings = ReplaySettings(replicas=2, cache_blocks=10, overload_factor=0)

    summary = await replay(trace, settings, spectator, ManualClock())

    assert summary.cache_aware.hit_tokens == summary.infinite.hit_tokens == 2_048
    assert summary.round_robin.hit_tokens == 1_024
    assert summary.reason_codes == {"AFFINITY_HINT": 1, "NO_HINT": 1, "PREFIX_MATCH": 2}
    assert [row.requests for row in summary.per_replica] == [4, 0]
    assert (spectator.own_server, spectator.played_requests) == (True, 4)


async def test_server_mirrors_every_cache(tmp_path: Path) -> None:
    """After many stores and evictions the index holds exactly the caches, at the right depths."""
    trace = load_trace(conversations(tmp_path / "t.jsonl", 150), 0)
    spectator = Spectator()
    settings = ReplaySettings(replicas=3, cache_blocks=25)
    async with running_server(throwaway_settings(settings)) as server:
        at_server = ReplaySettings(replicas=3, cache_blocks=25, server=server.grpc_target)
        summary = await replay(trace, at_server, spectator, ManualClock())
        index = server.plane.index
        assert spectator.experiment is not None
        caches = spectator.experiment._fleet._caches
        depth_of = {
            block_hash: depth * 512
            for prompt in trace.prompts
            for depth, block_hash in enumerate(prompt.block_hashes, start=1)
        }
        key = PartitionKey("replay", "mooncake", HASH_SCHEME, "")
        held = {
            (candidate[0], block_hash, candidate[1])
            for block_hash in depth_of
            for candidate in index.match_exact(key, block_hash, 0)
        }

    assert summary.evicted_blocks > 100
    assert held == {
        (f"replica-{number}", block_hash, tokens)
        for number, cache in enumerate(caches)
        for block_hash, tokens in depth_of.items()
        if block_hash in cache
    }


async def test_same_seed_same_numbers(tmp_path: Path) -> None:
    """Two runs with one seed agree in everything, two seeds do not."""
    trace = conversations(tmp_path / "t.jsonl", 120)
    runs = [
        await play(trace, ReplaySettings(replicas=4, cache_blocks=30, seed=seed))
        for seed in (1, 1, 2)
    ]

    assert runs[0] == runs[1]
    assert runs[0].per_replica != runs[2].per_replica


async def test_hints_beat_round_robin(tmp_path: Path) -> None:
    """Conversations stay where their history is."""
    trace = conversations(tmp_path / "t.jsonl", 200)

    summary = await play(trace, ReplaySettings(replicas=4, cache_blocks=100))

    assert summary.cache_aware.hit_ratio > 1.3 * summary.round_robin.hit_ratio
    assert summary.cache_aware.hit_ratio <= summary.infinite.hit_ratio


async def test_earlier_replay_leaves_no_trace(tmp_path: Path) -> None:
    """Replicas start empty, also at a server that saw the same replay before."""
    trace = conversations(tmp_path / "t.jsonl", 40)
    async with running_server(throwaway_settings(ReplaySettings())) as server:
        runs = [await play(trace, ReplaySettings(server=server.grpc_target)) for _ in range(2)]

    assert runs[0].cache_aware == runs[1].cache_aware


async def test_unknown_replicas_are_no_hint(tmp_path: Path) -> None:
    """A hint for a replica of another fleet ends in round robin."""
    trace = hand_trace(tmp_path / "t.jsonl")
    async with scripted_server() as server:
        server.route = answer("PREFIX_MATCH", "somebody-else")
        summary = await play(trace, ReplaySettings(server=server.target, replicas=2))

    assert summary.routes["round_robin"] == 4
    assert summary.reason_codes == {"NO_HINT": 4}


async def test_server_gone_in_the_middle(tmp_path: Path) -> None:
    """The error says which server, why, and how far the replay was."""
    trace = load_trace(conversations(tmp_path / "t.jsonl", 20), 0)
    async with scripted_server() as server:

        async def route(request: pb.LookupRouteRequest, context: Context) -> Answer:
            """Answer when reached and five times more, then break."""
            is_over = len(server.lookups) > 6
            chosen = abort(grpc.StatusCode.UNAVAILABLE) if is_over else answer("NO_HINT")
            return await chosen(request, context)

        server.route = route
        settings = ReplaySettings(server=server.target)
        message = r"127\.0\.0\.1:\d+ did not answer .*UNAVAILABLE.*; 5 of 20 requests done"
        with pytest.raises(ServerLostError, match=message):
            await replay(trace, settings, Spectator(), ManualClock())


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNIMPLEMENTED])
async def test_server_that_takes_no_events(tmp_path: Path, status: grpc.StatusCode) -> None:
    """A replay does not begin at a server that cannot be told that replicas are empty."""
    trace = load_trace(hand_trace(tmp_path / "t.jsonl"), 0)
    async with scripted_server() as server:
        server.event_status = status
        with pytest.raises(ServerLostError, match=rf"{status.name}.*; 0 of 4 requests done"):
            await replay(trace, ReplaySettings(server=server.target), Spectator(), ManualClock())


async def test_server_that_hangs(tmp_path: Path) -> None:
    """A server that takes longer than the deadline is as good as gone."""
    trace = load_trace(hand_trace(tmp_path / "t.jsonl"), 0)
    async with scripted_server() as server:

        async def route(request: pb.LookupRouteRequest, context: Context) -> Answer:
            """Answer when reached, and never again."""
            is_first = len(server.lookups) == 1
            return await (answer("NO_HINT") if is_first else server.hang)(request, context)

        server.route = route
        settings = ReplaySettings(server=server.target, deadline_ns=2_000_000_000)
        with pytest.raises(ServerLostError, match=r"DEADLINE_EXCEEDED.*; 0 of 4 requests done"):
            await replay(trace, settings, Spectator(), ManualClock())


@pytest.mark.parametrize("tenant_id", ["", PROBE_TENANT_ID])
def test_tenants_that_get_no_answers_are_refused(tmp_path: Path, tenant_id: str) -> None:
    """Neither the empty nor the reserved tenant can show anything."""
    trace = load_trace(hand_trace(tmp_path / "t.jsonl"), 0)
    with pytest.raises(ConfigError, match="--tenant"):
        run_replay(trace, ReplaySettings(tenant_id=tenant_id), Spectator())


def test_throwaway_server_is_local_and_large_enough() -> None:
    """It listens on loopback, and holds what the fleet holds for as long as it takes."""
    settings = throwaway_settings(ReplaySettings(replicas=8, cache_blocks=1_000_000))

    assert settings.grpc.bind_address.startswith("127.0.0.1:")
    assert settings.http.bind_address.startswith("127.0.0.1:")
    assert settings.index.entries_max == 8_000_000
    assert settings.index.ttl_ns == ReplaySettings().server_ttl_ns
