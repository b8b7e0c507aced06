"""Probes wait for the offload tier, and for one another where they are about the same backend."""

import asyncio

import pytest
from served_plane import new_plane

from inferencecache.service.match import Matcher
from inferencecache.service.probe import PlaneProbeTarget, Prober, ProbeRequest
from inferencecache.settings.ranking import RankingSettings
from inferencecache.transport.probe_runner import ProbeRunner, T2ProbeError, T2Prober


def runner(t2_prober: T2Prober | None) -> tuple[ProbeRunner, PlaneProbeTarget]:
    """Return a runner over a real plane."""
    plane = new_plane()
    matcher = Matcher(plane.index, RankingSettings())
    target = PlaneProbeTarget(plane.index, matcher, plane.policies, plane.clock)
    return ProbeRunner(Prober(target), t2_prober), target


class Tier:
    """An offload tier that answers when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.running: list[str] = []
        self.finished: list[str] = []
        self.may_answer = asyncio.Event()
        self.begun = asyncio.Event()

    async def cycle(self, backend: str, payload: bytes) -> None:
        """Wait, then answer."""
        assert payload
        self.running.append(backend)
        self.begun.set()
        await self.may_answer.wait()
        self.finished.append(backend)
        if self.error is not None:
            raise self.error


def request(backend: str = "b") -> ProbeRequest:
    """Return a request for a backend."""
    return ProbeRequest(backend=backend, model="m", hash_scheme="s")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (T2ProbeError("put", "connection refused"), "put failed: connection refused"),
        (T2ProbeError("get", "not found"), "get failed: not found"),
        (ConnectionResetError("gone"), "gone"),
    ],
)
async def test_failures_of_the_tier_are_results(error: Exception, words: str) -> None:
    """Nothing that the tier does ends in an exception."""
    tier = Tier(error)
    tier.may_answer.set()
    probes, _ = runner(tier)
    result = await probes.run(request())
    assert (result.ingest, result.routing, result.t2) == ("ok", "ok", "failed")
    assert result.errors[0].message == f"T2 put/get cycle failed: {words}"


async def test_one_backend_is_probed_by_one_at_a_time() -> None:
    """The second waits until the first is through."""
    tier = Tier()
    probes, target = runner(tier)
    first = asyncio.create_task(probes.run(request()))
    second = asyncio.create_task(probes.run(request()))
    await tier.begun.wait()
    for _ in range(10):
        await asyncio.sleep(0)
    assert (tier.running, target.reports) == (["b"], 1)
    tier.may_answer.set()
    assert [(await task).t2 for task in (first, second)] == ["ok", "ok"]
    assert target.reports == 2


async def test_an_abandoned_probe_lets_the_next_one_in() -> None:
    """Whoever goes away leaves neither a lock nor an entry."""
    tier = Tier()
    probes, _ = runner(tier)
    abandoned = asyncio.create_task(probes.run(request()))
    await tier.begun.wait()
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    tier.may_answer.set()
    assert (await probes.run(request())).all_passed
