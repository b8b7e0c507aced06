"""A fake engine: simulated ranks behind real sockets, driven by steps.

Rules of this file
    1. Whatever the engine does goes through its player and then to its sockets, in that order, so
       that these, the metrics page and what must follow for an index never disagree.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from inferencecache.app.fake_engine_requests import EngineRequests
from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import ConfigError
from inferencecache.settings.address import ADDRESS_FORM, BindAddress
from inferencecache.settings.fake_engine import FakeEngineSettings
from inferencecache.settings.http import HttpSettings
from inferencecache.simulation import (
    EngineGauges,
    EngineLayout,
    EnginePlayer,
    ExpectedKey,
    HashForm,
    LifeRules,
    PublisherPlan,
    Restart,
    Step,
    StreamRules,
    layout_of,
    plan_of,
    render_page,
)
from inferencecache.simulation.engine_player import Emission
from inferencecache.transport.fake_engine_sockets import FakeEngineSockets
from inferencecache.transport.http_pages import PageListener
from inferencecache.transport.http_public import PublicView, public_listener
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.transport.system_clock import SystemClock


class FakeEngine:
    """One engine with its sockets and its page.

    Args:
        settings: What it pretends to be.
        clock: Stamps its messages.

    Raises:
        ConfigError: The layout, the configuration or their combination makes no sense.

    Attributes:
        layout: The release it imitates.
        plan: Where and how it publishes.
        player: Its ranks.
        requests: Answers requests; None where it is not to answer any.
        metrics_url: Its page; empty before :meth:`start`.
        is_down: Whether it has crashed and is not back.
    """

    def __init__(self, settings: FakeEngineSettings, clock: Clock | None = None) -> None:
        self.layout = layout_of(settings.layout)
        if settings.groups > 1 and not self.layout.has_groups:
            raise ConfigError(
                field="--groups",
                value=settings.groups,
                allowed=f"1, since {self.layout.name} does not tell groups",
            )
        _check_address(settings.openai_address)
        self.plan = _plan(settings, self.layout)
        self._settings = settings
        self._clock = clock or SystemClock()
        self.player = EnginePlayer(
            _life_rules(settings, self.layout),
            _stream_rules(settings, self.layout, self.plan),
            settings.ranks,
        )
        self._sockets = FakeEngineSockets(self.plan, self.player.streams)
        self.requests: EngineRequests | None = None
        if settings.openai_address:
            self.requests = EngineRequests(
                settings, self.player, self._clock, self._send, self._page
            )
        self.metrics_url = ""
        self.is_down = False
        self._metrics_settings = HttpSettings(bind_address=settings.metrics_address)
        self._http = self._metrics_listener()

    @property
    def endpoints(self) -> list[str]:
        """Per rank, where to subscribe."""
        return self._sockets.endpoints

    @property
    def replay_endpoints(self) -> list[str]:
        """Per rank, where to ask for replays."""
        return self._sockets.replay_endpoints

    async def start(self) -> None:
        """Open the sockets, the page and, where it answers requests, that address.

        Raises:
            ListenError: An address cannot be had; nothing stays open then.
        """
        self._sockets.start()
        try:
            await self._open_http()
        except BaseException:
            await self.stop()
            raise

    async def play(self, step: Step) -> int:
        """Do one step.

        Returns:
            How long the step wants to wait afterwards, in milliseconds.
        """
        emission = self.player.play(step, self._clock.now_ns() / NS_PER_S)
        await self._send(emission)
        return emission.wait_ms

    async def crash(self) -> None:
        """End as a process that is killed: requests, connections and cache are lost."""
        self.is_down = True
        await self._close_http()
        for rank in range(self._settings.ranks):
            await self._sockets.close(rank)

    async def revive(self) -> None:
        """Begin another life at the same addresses, with nothing cached.

        Raises:
            ListenError: An address was taken meanwhile.
        """
        for rank in range(self._settings.ranks):
            self.player.play(Restart(rank=rank), self._clock.now_ns() / NS_PER_S)
            await self._sockets.reopen(rank)
        await self._open_http()
        self.is_down = False

    def gauges(self) -> EngineGauges:
        """Return its load and counters now."""
        gauges = self.player.gauges()
        return gauges if self.requests is None else self.requests.with_load(gauges)

    async def wait_subscribed(self) -> None:
        """Return once every rank has had a subscriber."""
        for rank in range(self._settings.ranks):
            await self.wait_rank_subscribed(rank)

    async def wait_rank_subscribed(self, rank: int) -> None:
        """Return once a rank has had a subscriber."""
        await self._sockets.wait_subscribed(rank)

    def expected(self) -> list[ExpectedKey]:
        """Return the keys an index must hold now; none if nobody can hear of them."""
        is_heard = self.plan.is_publishing and self.plan.is_binding
        return self.player.expected() if is_heard else []

    async def stop(self) -> None:
        """Close everything."""
        await self._close_http()
        await self._sockets.stop()

    async def _open_http(self) -> None:
        address = await self._http.start()
        self._metrics_settings = replace(self._metrics_settings, bind_address=str(address))
        self.metrics_url = f"http://{address}/metrics"
        if self.requests is not None:
            await self.requests.open()

    async def _close_http(self) -> None:
        if self.requests is not None:
            await self.requests.close()
        await self._http.stop()
        self._http = self._metrics_listener()

    async def _send(self, emission: Emission) -> None:
        if emission.is_restart:
            await self._sockets.restart(emission.rank)
        if emission.message is not None:
            await self._sockets.send(emission.rank, emission.message)

    def _metrics_listener(self) -> PageListener:
        view = PublicView(is_ready=_yes, is_warm=_yes, render_metrics=self._page)
        return public_listener(self._metrics_settings, view, StructuredLog())

    async def _page(self) -> bytes:
        return render_page(self.layout, self.gauges(), self._settings.model_name)


@asynccontextmanager
async def running_fake_engine(
    settings: FakeEngineSettings, clock: Clock | None = None
) -> AsyncIterator[FakeEngine]:
    """Run a fake engine for the length of a ``with`` block.

    Args:
        settings: What it pretends to be.
        clock: Stamps its messages.
    """
    engine = FakeEngine(settings, clock)
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


def _check_address(address: str) -> None:
    """Refuse an address of another form.

    Raises:
        ConfigError: It is neither empty nor an address.
    """
    try:
        BindAddress.parse(address or ":0")
    except ValueError:
        raise ConfigError(field="--openai-listen", value=address, allowed=ADDRESS_FORM) from None


def _plan(settings: FakeEngineSettings, layout: EngineLayout) -> PublisherPlan:
    """Return the engine's own configuration, or one that binds where it is told."""
    if settings.kv_events_config:
        return plan_of(settings.kv_events_config, layout)
    return PublisherPlan(
        endpoint=settings.bind_endpoint,
        replay_endpoint=settings.replay_endpoint,
        buffer_steps=settings.buffer_steps,
        topic=settings.topic,
    )


def _life_rules(settings: FakeEngineSettings, layout: EngineLayout) -> LifeRules:
    return LifeRules(
        block_size_tokens=settings.block_size_tokens,
        index_block_size_tokens=settings.index_block_size_tokens,
        cache_blocks=settings.cache_blocks,
        groups=settings.groups,
        moves_carry_tokens=layout.is_sglang,
    )


def _stream_rules(
    settings: FakeEngineSettings, layout: EngineLayout, plan: PublisherPlan
) -> StreamRules:
    is_auto = settings.hash_form == "auto"
    return StreamRules(
        layout=layout,
        hash_form=layout.hash_form if is_auto else HashForm(settings.hash_form),
        topic=plan.topic,
        ring_batches=plan.buffer_steps,
        has_end_mark=settings.has_end_mark,
    )


def _yes() -> bool:
    return True
