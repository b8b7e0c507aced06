"""A fake engine as the doctor finds it."""

from inferencecache.app.doctor import diagnose
from inferencecache.app.doctor_findings import Diagnosis
from inferencecache.app.fake_engine import FakeEngine
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.settings.producer import DecodeSettings
from inferencecache.simulation import parse_script

QUICK = 400 * NS_PER_MS
"""Where nothing is to come."""
ENOUGH = 2 * NS_PER_S
"""Where something comes at once, and silence after it has to be waited for."""


async def examine(engine: FakeEngine | None = None, **settings: object) -> dict[str, str]:
    """Return the codes found with their messages."""
    return by_code(await diagnosis_of(engine, **settings))


async def diagnosis_of(engine: FakeEngine | None = None, **settings: object) -> Diagnosis:
    """Examine *engine* at all its endpoints, unless told otherwise."""
    chosen: dict[str, object] = {"listen_ns": QUICK, "timeout_ns": 5 * NS_PER_S}
    if engine is not None:
        chosen |= {
            "engine_endpoint": engine.endpoints[0],
            "replay_endpoint": (engine.replay_endpoints or [""])[0],
            "metrics_url": engine.metrics_url,
        }
    chosen |= settings
    return await diagnose(DoctorSettings(**chosen), DecodeSettings())  # type: ignore[arg-type]


def by_code(diagnosis: Diagnosis) -> dict[str, str]:
    """Return message by code."""
    return {finding.code: finding.message for finding in diagnosis.findings}


async def play(engine: FakeEngine, script: str, ranks: int = 1) -> None:
    """Play a script."""
    for step in parse_script(script, "script", ranks):
        await engine.play(step)
