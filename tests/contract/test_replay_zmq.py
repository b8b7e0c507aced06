"""A replay through engines, ZMQ, producer and server finds what a direct one finds."""

import dataclasses
import json
from pathlib import Path

import pytest
from replay_process import run_replay_command
from replay_traces import conversations, hand_trace

from inferencecache.app.replay import replay
from inferencecache.app.replay_input import load_trace
from inferencecache.clock import ManualClock
from inferencecache.errors import ConfigError
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import Experiment, ReplaySummary

SMALL = ReplaySettings(replicas=3, cache_blocks=40, match_share_min=0.05)


class Spectator:
    """Looks on and says nothing."""

    def started(self, target: str, *, is_own_server: bool) -> None:
        """Ignore it."""

    def played(self, experiment: Experiment, requests: int) -> None:
        """Ignore it."""


async def play(path: Path, settings: ReplaySettings) -> ReplaySummary:
    """Replay a trace whose keys are made from tokens."""
    trace = load_trace(path, 0, for_engines=True)
    return await replay(trace, settings, Spectator(), ManualClock(10**18))


@pytest.mark.parametrize("layout", ["vllm-0.9.1", "vllm-0.22", "vllm-0.33", "sglang-0.5.22"])
async def test_same_table_as_without_the_detour(tmp_path: Path, layout: str) -> None:
    """Every number but times equals that of reports made directly, in old and new layouts."""
    path = conversations(tmp_path / "trace.jsonl", 60)
    direct = await play(path, SMALL)
    through = await play(path, dataclasses.replace(SMALL, through_zmq=True, engine_layout=layout))

    assert direct.evicted_blocks > 0
    assert direct.cache_aware.hit_tokens > 0
    same = {"lookup": direct.lookup, "duration_s": direct.duration_s}
    assert dataclasses.replace(through, **same) == direct


async def test_keys_from_tokens_change_no_baseline(tmp_path: Path) -> None:
    """Infinite cache and round robin are those of the trace's own keys."""
    path = hand_trace(tmp_path / "trace.jsonl")
    by_ids = await replay(load_trace(path, 0), SMALL, Spectator(), ManualClock(10**18))
    through = await play(path, dataclasses.replace(SMALL, through_zmq=True))

    assert through.infinite == by_ids.infinite
    assert through.round_robin == by_ids.round_robin


async def test_more_replicas_than_threads(tmp_path: Path) -> None:
    """Each engine has a thread of its own, so there is a bound."""
    settings = ReplaySettings(replicas=65, through_zmq=True)
    with pytest.raises(ConfigError, match="at most 64"):
        await play(hand_trace(tmp_path / "trace.jsonl"), settings)


async def test_command(tmp_path: Path) -> None:
    """The switch stands alone, and the result has the usual form."""
    path = hand_trace(tmp_path / "trace.jsonl")
    ended = await run_replay_command(str(path), "--through-zmq", "--replicas", "2", "--json")

    assert ended.code == 0
    assert json.loads(ended.stdout)["infinite"]["hit_tokens"] > 0
