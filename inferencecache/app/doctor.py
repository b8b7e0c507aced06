"""Look at one engine from outside: ports first, then events, past and metrics.

Rules of this file
    1. Nothing is changed anywhere: no report is made, no port is bound.
    2. Later checks run only where earlier ones make sense; everything else always runs.
"""

import asyncio
from collections.abc import Sequence

from inferencecache.app.doctor_findings import Diagnosis, Finding, Status
from inferencecache.app.doctor_index import held_prompts, judge_index, look_up
from inferencecache.app.doctor_layout import Shape, has_store, shape_of
from inferencecache.app.doctor_reach import judge_engine_port, judge_ranks, judge_replay_port
from inferencecache.app.doctor_signals import (
    judge_page,
    judge_replay,
    no_page,
    no_replay,
    traffic_between,
)
from inferencecache.app.doctor_stream import (
    judge_block_size,
    judge_layout,
    judge_rank,
    judge_topic,
)
from inferencecache.clock import NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.settings.producer import DecodeSettings
from inferencecache.settings.target import check_target
from inferencecache.transport.doctor_ear import Heard, Past, ask_for_past, listen
from inferencecache.transport.doctor_page import Page, fetch_page
from inferencecache.transport.doctor_port import Port, look_at_port, port_after


def run_doctor(settings: DoctorSettings, decode: DecodeSettings) -> Diagnosis:
    """Return what :func:`diagnose` does, on a loop of its own."""
    return asyncio.run(diagnose(settings, decode))


async def diagnose(settings: DoctorSettings, decode: DecodeSettings) -> Diagnosis:
    """Check one engine.

    Args:
        settings: The engine, and what is expected of it.
        decode: Limits of decoding.

    Raises:
        ConfigError: No engine is named, or the server's address has no such form.
    """
    if not settings.engine_endpoint:
        raise ConfigError(field="--engine", value="", allowed="an endpoint such as tcp://HOST:PORT")
    if settings.server:
        check_target("--server", settings.server)
    ports = await _look_at_ports(settings)
    findings = [judge_engine_port(ports[0])]
    if findings[0].status is Status.OK:
        findings += judge_ranks(ports[1:-1], ports[-1])
    before = await _page(settings)
    heard = await _listen(settings, decode) if findings[0].status is Status.OK else None
    past, replay = await _replay(settings)
    after = await _page(settings) if heard is not None else None
    if heard is not None:
        findings.append(judge_topic(heard, traffic_between(before, after), settings))
    payloads = [*past.payloads, *(heard.payloads if heard is not None else ())]
    shape = shape_of(payloads, decode, has_topic=past.has_topic)
    shape.unreadable += past.malformed + (heard.malformed if heard is not None else 0)
    findings += _judge_shape(shape, settings)
    findings += replay
    findings.append(no_page() if before is None else judge_page(before, settings))
    if settings.server:
        prompts = held_prompts(payloads, decode, settings.block_size_tokens)
        looked = await look_up(prompts, settings) if prompts else None
        findings.append(judge_index(looked, settings))
    return Diagnosis(findings=findings)


async def _look_at_ports(settings: DoctorSettings) -> Sequence[Port]:
    """Return the port of every rank and the one after."""
    timeout_s = settings.timeout_ns / NS_PER_S
    endpoints = [port_after(settings.engine_endpoint, n) for n in range(settings.ranks + 1)]
    return await asyncio.gather(*(look_at_port(endpoint, timeout_s) for endpoint in endpoints))


async def _page(settings: DoctorSettings) -> Page | None:
    """Return the metrics page; None if there is none to look at."""
    if not settings.metrics_url:
        return None
    return await fetch_page(settings.metrics_url, settings.timeout_ns / NS_PER_S)


async def _listen(settings: DoctorSettings, decode: DecodeSettings) -> Heard:
    """Listen until a store comes under the topic, or the time is up."""

    def is_enough(topic: str, payload: bytes) -> bool:
        return topic.startswith(settings.topic) and has_store(payload, decode)

    return await listen(settings.engine_endpoint, settings.listen_ns / NS_PER_S, is_enough)


async def _replay(settings: DoctorSettings) -> tuple[Past, list[Finding]]:
    """Return what the engine still has, and what that says."""
    endpoint = settings.replay_endpoint
    if not endpoint:
        return Past(), [no_replay()]
    timeout_s = settings.timeout_ns / NS_PER_S
    wrong = judge_replay_port(await look_at_port(endpoint, timeout_s))
    if wrong is not None:
        return Past(), [wrong]
    past = await ask_for_past(endpoint, timeout_s, 4 * timeout_s)
    return past, list(judge_replay(past, endpoint))


def _judge_shape(shape: Shape, settings: DoctorSettings) -> list[Finding]:
    """Return what live and replayed messages say together; nothing if there were none."""
    if not shape.batches and not shape.unreadable:
        return []
    return [
        *judge_layout(shape, settings),
        *judge_block_size(shape, settings),
        *judge_rank(shape, settings),
    ]
