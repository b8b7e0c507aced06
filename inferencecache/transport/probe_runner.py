"""Run self-tests: one at a time per backend and model, and wait for the offload tier."""

import asyncio
from typing import Final, Protocol

from inferencecache.service.probe import Prober, ProbeRequest, ProbeResult, T2Cycle

_LOCKS: Final = 64
"""Probes of different backends rarely share a lock; the table never grows."""


class T2ProbeError(Exception):
    """The offload tier did not do what it was asked.

    Args:
        step: ``put`` or ``get``.
        reason: What went wrong.
    """

    def __init__(self, step: str, reason: str) -> None:
        super().__init__(f"{step} failed: {reason}")


class T2Prober(Protocol):
    """Puts something into a backend's offload tier and gets it back."""

    async def cycle(self, backend: str, payload: bytes) -> None:
        """Put *payload* and get it back.

        Raises:
            T2ProbeError: Either failed, or what came back is something else.
        """
        ...


class ProbeRunner:
    """Runs self-tests.

    Args:
        prober: Knows the stages.
        t2_prober: Tests offload tiers; without one that stage is skipped.
    """

    def __init__(self, prober: Prober, t2_prober: T2Prober | None = None) -> None:
        self._prober = prober
        self._t2_prober = t2_prober
        self._locks = [asyncio.Lock() for _ in range(_LOCKS)]

    async def run(self, request: ProbeRequest) -> ProbeResult:
        """Return what came of probing."""
        async with self._locks[hash((request.backend, request.model)) % _LOCKS]:
            steps = self._prober.steps(request, has_t2_prober=self._t2_prober is not None)
            try:
                cycle = next(steps)
                steps.send(await self._reason(cycle))
            except StopIteration as finished:
                result: ProbeResult = finished.value
                return result
            finally:
                steps.close()
        raise AssertionError("a probe has at most one cycle")

    async def _reason(self, cycle: T2Cycle) -> str:
        """Return why *cycle* fails, empty if it does not."""
        if self._t2_prober is None:
            return "there is nothing to test it with"
        try:
            await self._t2_prober.cycle(cycle.backend, cycle.payload)
        except (T2ProbeError, OSError) as error:
            return str(error)
        return ""
