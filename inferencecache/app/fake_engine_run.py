"""Run a fake engine as the whole of a process: steps in, ``EXPECT`` lines out."""

import asyncio
import signal
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import uvloop

from inferencecache.app.fake_engine import FakeEngine, running_fake_engine
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.settings.fake_engine import (
    FakeEngineCommandSettings,
    FakeEngineSettings,
    FakeTrafficSettings,
)
from inferencecache.simulation import (
    ExpectedKey,
    Serve,
    Step,
    TraceRequest,
    TrafficRules,
    parse_script,
    parse_trace,
    trace_tokens,
    traffic,
)

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the steps come from; without either file they are generated.

    Attributes:
        script: A script of steps.
        trace: A request trace in the Mooncake format.
    """

    script: Path | None = None
    trace: Path | None = None


def run_fake_engine(
    source: Source, settings: FakeEngineCommandSettings, write: Callable[[str], object]
) -> None:
    """Play the steps, then stay for replays until a signal.

    Args:
        source: The steps.
        settings: Engine and traffic.
        write: Takes each line of output.

    Raises:
        ConfigError: A file or a setting is wrong.
        ListenError: An address cannot be had.
    """
    steps = steps_of(source, settings)
    uvloop.run(_run(steps, settings, write))


def steps_of(source: Source, settings: FakeEngineCommandSettings) -> Iterable[Step]:
    """Return the steps to play; none where requests are to come from outside.

    Raises:
        ConfigError: A file cannot be read, or is wrong; a trace fails at its first bad line.
    """
    engine, rules = settings.engine, settings.traffic
    if source.script is not None:
        return parse_script(_read(source.script), source.script.name, engine.ranks)
    if source.trace is not None:
        lines = _read(source.trace).encode().splitlines()
        return _traced(parse_trace(lines, source.trace.name), engine.ranks)
    if engine.openai_address and not rules.prompts:
        return ()
    return islice(traffic(_traffic_rules(engine, rules)), rules.prompts or None)


def expect_lines(keys: Iterable[ExpectedKey]) -> list[str]:
    """Return what an index must hold, one line per key."""
    lines = [
        f"EXPECT prefix_hash[{number}]={key.key:016x} token_count={key.token_count} "
        f"tier={key.tier.name}" + (f" adapter_id={key.adapter_id}" if key.adapter_id else "")
        for number, key in enumerate(keys)
    ]
    return lines or ["EXPECT no index entries"]


async def _run(
    steps: Iterable[Step], settings: FakeEngineCommandSettings, write: Callable[[str], object]
) -> None:
    asked_to_stop = asyncio.Event()
    for number in _SIGNALS:
        asyncio.get_running_loop().add_signal_handler(number, asked_to_stop.set)
    async with running_fake_engine(settings.engine) as engine:
        for line in _greeting(engine):
            write(line)
        playing = asyncio.create_task(_play(engine, steps, settings.traffic))
        stopping = asyncio.create_task(asked_to_stop.wait())
        await asyncio.wait((playing, stopping), return_when=asyncio.FIRST_COMPLETED)
        if playing.done():
            playing.result()
        playing.cancel()
        if engine.requests is not None:
            await stopping
        for line in expect_lines(engine.expected()):
            write(line)
        if settings.traffic.stays:
            await stopping
        stopping.cancel()
        await asyncio.gather(playing, stopping, return_exceptions=True)


async def _play(engine: FakeEngine, steps: Iterable[Step], rules: FakeTrafficSettings) -> None:
    """Play every step; generated prompts are spaced by the interval."""
    if rules.awaits_subscriber:
        await engine.wait_subscribed()
    for step in steps:
        wait_ns = await engine.play(step) * NS_PER_MS
        if not wait_ns and isinstance(step, Serve):
            wait_ns = rules.interval_ns
        await asyncio.sleep(wait_ns / NS_PER_S)


def _greeting(engine: FakeEngine) -> Iterator[str]:
    """Yield where the engine is reached."""
    plan = engine.plan
    if not plan.is_publishing:
        yield "SILENT this configuration publishes no events"
    elif not plan.is_binding:
        yield f"SILENT the publisher connects to {plan.endpoint} and nobody listens there"
    else:
        for rank, endpoint in enumerate(engine.endpoints):
            yield f"EVENTS rank={rank} endpoint={endpoint} topic={plan.topic!r}"
    for rank, endpoint in enumerate(engine.replay_endpoints):
        yield f"REPLAY rank={rank} endpoint={endpoint}"
    yield f"METRICS url={engine.metrics_url}"
    if engine.requests is not None:
        yield f"OPENAI url=http://{engine.requests.address}/v1"


def _traffic_rules(engine: FakeEngineSettings, rules: FakeTrafficSettings) -> TrafficRules:
    return TrafficRules(
        seed=rules.seed,
        families=rules.families,
        shared_blocks=rules.shared_blocks,
        block_size_tokens=max(engine.block_size_tokens, engine.index_block_size_tokens),
        ranks=engine.ranks,
    )


def _traced(requests: Iterable[TraceRequest], ranks: int) -> Iterator[Step]:
    """Yield one prompt per request, the ranks taking turns."""
    for number, request in enumerate(requests):
        yield Serve(rank=number % ranks, then=trace_tokens(request.hash_ids, request.input_length))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(field="file", value=str(path), allowed=f"readable ({error})") from error
