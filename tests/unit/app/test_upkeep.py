"""Periodic work: what runs, in slices, and what is measured."""

import asyncio

import pytest

from inferencecache.app.server import Server, running_server
from inferencecache.app.upkeep import Upkeep
from inferencecache.clock import ManualClock
from inferencecache.index import EventType, IndexEvent, StateUpdate
from inferencecache.service import CachePlane
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.process import ProcessSettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.throwaway import throwaway_server_settings

SECOND_NS = 1_000_000_000
MINUTE_NS = 60 * SECOND_NS


def built(clock: ManualClock, settings: ServerSettings) -> tuple[Server, Upkeep]:
    """Return a server that is not started, and its upkeep."""
    server = Server(settings, clock=clock)
    upkeep = Upkeep(settings=settings, plane=server.plane, metrics=server.metrics, clock=clock)
    return server, upkeep


def report(plane: CachePlane, blocks: int) -> None:
    """Report one chain of replica ``a``."""
    update = StateUpdate(tenant_id="t", model_id="m", replica_id="a", hash_scheme="vllm")
    update.add_chain([number.to_bytes(8) for number in range(blocks)], [16] * blocks)
    plane.report(update)


async def test_a_sweep_removes_what_has_expired_and_is_counted() -> None:
    """After the sweep the entries are gone, whoever asks or not."""
    clock = ManualClock(1_700_000_000 * SECOND_NS)
    server, upkeep = built(clock, throwaway_server_settings())
    report(server.plane, 5_000)
    clock.advance_ns(31 * MINUTE_NS)
    await upkeep.sweep()
    assert server.plane.index.entries == 0
    page = (await server.metrics.render()).decode()
    assert "inferencecache_index_sweep_duration_seconds_count 1.0" in page


async def test_reclaiming_finishes_what_a_clear_has_left() -> None:
    """A big replica's memory is freed after its ALL_CLEARED, in the background."""
    clock = ManualClock(1_700_000_000 * SECOND_NS)
    server, upkeep = built(clock, throwaway_server_settings(index=IndexSettings(slice_blocks=16)))
    report(server.plane, 5_000)
    clear = IndexEvent(type=EventType.ALL_CLEARED, tenant_id="t", model_id="m", replica_id="a")
    server.plane.publish(clear)
    await upkeep.reclaim()
    assert not server.plane.index.has_pending_reclaim
    assert server.plane.index.entries == 0
    server.plane.index.check_invariants()


async def test_halving_runs_over_everything() -> None:
    """Halving use counts ends and leaves the index intact."""
    server, upkeep = built(ManualClock(1_700_000_000 * SECOND_NS), throwaway_server_settings())
    report(server.plane, 100)
    await upkeep.halve_credits()
    server.plane.index.check_invariants()


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (throwaway_server_settings(), {"sweep", "reclaim", "loop-lag"}),
        (
            throwaway_server_settings(
                index=IndexSettings(lfu_halving_interval_ns=MINUTE_NS),
                metrics=MetricsSettings(loop_lag_interval_ns=0),
            ),
            {"sweep", "reclaim", "lfu-halving"},
        ),
    ],
)
async def test_an_interval_of_zero_turns_work_off(
    settings: ServerSettings, names: set[str]
) -> None:
    """What is never to happen has no task."""
    _, upkeep = built(ManualClock(), settings)
    tasks = upkeep.tasks()
    assert set(tasks) == names
    for work in tasks.values():
        work.close()


async def test_work_repeats_while_the_server_runs() -> None:
    """Sweeps and lag measurements come again and again, without anybody asking."""
    settings = throwaway_server_settings(
        index=IndexSettings(sweep_interval_ns=1_000_000),
        metrics=MetricsSettings(loop_lag_interval_ns=1_000_000),
    )
    async with running_server(settings) as server, asyncio.timeout(30):
        shown = ""
        while not ("sweep_duration_seconds_count 3" in shown and "lag_seconds_count 3" in shown):
            shown += (await server.metrics.render()).decode()


async def test_broken_upkeep_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose sweeps fail must not look healthy for ever."""

    async def broken(_upkeep: Upkeep) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Upkeep, "reclaim", broken)
    settings = throwaway_server_settings(
        process=ProcessSettings(reclaim_interval_ns=1_000_000),
    )
    async with running_server(settings) as server, asyncio.timeout(30):
        with pytest.raises(ZeroDivisionError):
            await server.wait_broken()
