"""The pipeline of plugins alone: what a Pick with two of them costs beyond a Pick without any."""

import asyncio
from collections.abc import Sequence
from random import Random
from time import process_time_ns

from benchmarks.measure import NS_PER_US
from benchmarks.options import Options
from benchmarks.picker_made import ENDPOINTS, PLUGINS
from benchmarks.row import Bound, Row
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import LocalDestination, Question
from inferencecache.picker.fixed_endpoints import read_endpoints, with_fixed
from inferencecache.picker.fleet import EMPTY_FLEET, Candidate, WorkerSet
from inferencecache.picker.pipeline import (
    Director,
    DirectorParts,
    EndpointView,
    IgnorePlugins,
    Placed,
    PluginRegistry,
    PluginServices,
)
from inferencecache.picker.pipeline.build import PipelineSources, build_pipeline
from inferencecache.picker.plugins import BUILTIN_TYPES
from inferencecache.picker.request import parse_body
from inferencecache.resources.endpoint_picker_config import read_endpoint_picker_config
from inferencecache.service.picker_plugins import pipeline_config
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.picker import PickerParseSettings
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.picker_producers import ProducerTasks
from inferencecache.transport.system_clock import SystemClock

_REPETITIONS = 9


def director_row(options: Options) -> Row:
    """Return the cost of the steps of the pipeline for one Pick."""
    return asyncio.run(_measured(100 if options.quick else 500))


async def _measured(count: int) -> Row:
    director, candidates, question = _director(), _candidates(), _question()
    costs_us = []
    for _ in range(_REPETITIONS):
        started_ns = process_time_ns()
        for _ in range(count):
            await _pick(director, candidates, question)
        costs_us.append((process_time_ns() - started_ns) / count / NS_PER_US)
    return Row(
        what=f"plugins of a Pick alone, two of them, {len(candidates)} endpoints, CPU",
        unit="µs",
        value=min(costs_us),
        bound=Bound.AT_MOST,
        target=100,
        note=f"least of {_REPETITIONS}, median {sorted(costs_us)[_REPETITIONS // 2]:.0f} µs",
    )


async def _pick(director: Director, candidates: Sequence[Candidate], question: Question) -> None:
    """Take all steps but those of the answer; nothing ends, so every endpoint has a load."""
    views = [EndpointView(candidate) for candidate in candidates]
    run = director.open(question)
    run.pre_admit()
    await run.produce(views)
    run.admit(views)
    placed = run.pre_request(run.rank(views))
    if not isinstance(placed, Placed):
        raise TypeError(placed)


def _director() -> Director:
    settings, clock = PickerPluginSettings(), SystemClock()
    config = read_endpoint_picker_config(PLUGINS.encode(), "PLUGINS", ResourceSettings())
    sources = PipelineSources(
        registry=PluginRegistry(BUILTIN_TYPES),
        services=PluginServices(clock=clock, draw=Random(1).random),
        settings=settings,
    )
    return Director(
        DirectorParts(
            pipeline=build_pipeline(pipeline_config(config), sources),
            runner=ProducerTasks(clock, settings.producers_max),
            observer=IgnorePlugins(),
            attributes_max=settings.attributes_max,
            bytes_per_token=PickerChoiceSettings().bytes_per_token,
        )
    )


def _candidates() -> list[Candidate]:
    fleet = with_fixed(EMPTY_FLEET, read_endpoints(ENDPOINTS), FleetSettings())
    (tier,) = fleet.everything.tiers
    (member,) = tier.members
    if not isinstance(member, WorkerSet):
        raise TypeError(member)
    return [
        Candidate(
            member=member,
            endpoint=endpoint,
            model=member.models[0],
            destination=LocalDestination(endpoint=endpoint.address),
        )
        for endpoint in member.endpoints
    ]


def _question() -> Question:
    content = Rope([b'{"model": "m", "prompt": "%s"}' % (b"x" * 10_240)])
    return Question(request=parse_body(content.join(), PickerParseSettings()), content=content)
