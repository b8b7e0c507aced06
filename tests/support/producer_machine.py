"""Random lives of an engine, a lossy way to the producer, and a server that is sometimes away."""

from held_index import HeldIndex
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from naive_engine import NaiveEngine

from inferencecache.events import (
    Apply,
    Command,
    Doubt,
    EventMapper,
    Frame,
    Outbox,
    RequestReplay,
    Reset,
    SequenceTracker,
    SyncState,
    decode_batch,
)
from inferencecache.settings.producer import (
    DecodeSettings,
    MapperSettings,
    OutboxSettings,
    SequenceSettings,
)

SEQUENCE = SequenceSettings(replay_idle_ns=10, replay_total_ns=10_000)
DECODE = DecodeSettings()
MAPPER = MapperSettings(lora_adapter_names="1=sql", orphan_hold_ns=10**12)

fates = st.sampled_from(["live", "live", "live", "lost", "twice"])
variants = st.lists(st.integers(0, 1), min_size=1, max_size=4)


def prompt_of(path: list[int]) -> tuple[int, ...]:
    """Return a prompt of 32 tokens per step; prompts share beginnings."""
    return tuple(
        token
        for position, variant in enumerate(path)
        for token in range(1_000 * position + variant, 1_000 * position + variant + 32)
    )


class ProducerMachine(RuleBasedStateMachine):
    """A producer follows an engine through everything that happens to real ones."""

    @initialize(
        size=st.sampled_from([4, 8, 16, 32]),
        uses_maps=st.booleans(),
        is_harsh=st.booleans(),
        ring_size=st.sampled_from([3, 100]),
    )
    def begin(self, size: int, ring_size: int, *, uses_maps: bool, is_harsh: bool) -> None:
        """Start an engine and connect; only in a harsh life are messages lost for good."""
        self.is_harsh = is_harsh
        self.engine = NaiveEngine(
            size, uses_maps=uses_maps, ring_size=ring_size if is_harsh else 100
        )
        self.tracker = SequenceTracker(SEQUENCE, has_replay=True)
        self.mapper = EventMapper(MAPPER)
        self.outbox = Outbox(OutboxSettings(), 16)
        self.index = HeldIndex()
        self.replay: tuple[int, list[tuple[int, bytes]]] | None = None
        self.now_ns = 0
        self.is_lossy = self.is_slow = False
        self.follow(self.tracker.connected(self.now_ns))

    def follow(self, commands: list[Command]) -> None:
        """Carry out what the tracker wants."""
        for command in commands:
            if isinstance(command, Apply):
                read = decode_batch(command.payload, DECODE)
                assert read.faults == {} or self.is_lossy
                self.outbox.add(self.mapper.apply(read, self.now_ns))
            elif isinstance(command, Reset):
                self.outbox.add(self.mapper.reset())
            elif isinstance(command, RequestReplay):
                ring = [m for m in self.engine.ring if m[0] >= command.start]
                self.replay = (command.ticket, ring)
            else:
                assert isinstance(command, Doubt)
                assert command.missed >= 0
                assert self.is_lossy or self.is_slow or self.engine.ring_size < 100
                self.is_lossy = True
                self.mapper.doubt()

    def publish(self, fate: str, *events: bytes) -> None:
        """Publish one message and let it meet its fate on the way."""
        number, payload = self.engine.publish(*events, is_burnt=fate == "burnt")
        if fate == "burnt":
            self.is_lossy = True
        for _ in range({"live": 1, "twice": 2}.get(fate, 0)):
            self.follow(self.tracker.live(Frame(number, payload), self.now_ns))

    # ---------------------------------------------------------------- the engine's life

    @rule(
        path=variants,
        lora_id=st.sampled_from([None, None, 1]),
        group=st.sampled_from([0, 0, 1, 2]),
        is_salted=st.sampled_from([False, False, False, True]),
        fate=fates,
    )
    def prompt(
        self, path: list[int], lora_id: int | None, group: int, fate: str, *, is_salted: bool
    ) -> None:
        """Serve a prompt; cached blocks are silent, others are announced in one event."""
        event = self.engine.store(prompt_of(path), lora_id, group, is_salted=is_salted)
        if event is not None:
            self.publish(fate, event)

    @precondition(lambda self: self.engine.blocks)
    @rule(data=st.data(), fate=fates)
    def copy(self, data: st.DataObject, fate: str) -> None:
        """Compute a block again in another place."""
        self.publish(fate, self.engine.add_copy(data.draw(st.sampled_from(self.held_blocks()))))

    @precondition(lambda self: self.engine.blocks)
    @rule(data=st.data(), fate=fates)
    def offload(self, data: st.DataObject, fate: str) -> None:
        """Copy a block to the host."""
        self.publish(fate, self.engine.offload(data.draw(st.sampled_from(self.held_blocks()))))

    @precondition(lambda self: self.engine.blocks)
    @rule(count=st.integers(1, 3), fate=fates, data=st.data())
    def evict(self, count: int, fate: str, data: st.DataObject) -> None:
        """Drop copies of the oldest leaves, several in one message."""
        events = []
        for name in self.engine.leaves()[:count]:
            mediums = sorted(self.engine.blocks[name].copies)
            events.append(self.engine.remove(name, data.draw(st.sampled_from(mediums))))
        self.publish(fate, *events)

    @rule(kind=st.sampled_from(["clear", "restart", "reconnect"]), fate=fates)
    def incident(self, kind: str, fate: str) -> None:
        """The cache is reset, the engine dies and comes back, or the connection breaks."""
        if kind == "clear":
            self.publish(fate, self.engine.clear())
            return
        if kind == "restart":
            self.engine.restart()
            self.replay = None  # what was being replayed died with the engine
            self.is_lossy = self.is_slow = False
        self.tracker.disconnected()
        self.follow(self.tracker.connected(self.now_ns))

    @precondition(lambda self: self.is_harsh)
    @rule(path=variants, group=st.sampled_from([0, 2]))
    def burn(self, path: list[int], group: int) -> None:
        """A store cannot be encoded; what stands on it later must not become a prompt's start."""
        event = self.engine.store(prompt_of(path), None, group, is_salted=False)
        if event is not None:
            self.publish("burnt", event)

    @precondition(lambda self: self.is_harsh and self.engine.blocks)
    @rule(data=st.data(), fate=fates)
    def evict_unreadably(self, data: st.DataObject, fate: str) -> None:
        """A removal arrives that nobody can read."""
        label = data.draw(st.sampled_from(self.held_blocks()))
        medium = data.draw(st.sampled_from(sorted(self.engine.blocks[label].copies)))
        self.is_lossy = True
        self.publish(fate, self.engine.remove_unreadably(label, medium))

    @precondition(lambda self: self.is_harsh)
    @rule()
    def burn_clear(self) -> None:
        """A clear cannot be encoded; what it removed can never be known."""
        self.publish("burnt", self.engine.clear())

    # ---------------------------------------------------------------- the way

    @precondition(lambda self: self.replay)
    @rule(count=st.integers(1, 5), holes=st.sets(st.integers(0, 4), max_size=2))
    def replay_some(self, count: int, holes: set[int]) -> None:
        """A replay goes on; the engine's socket may drop messages in the middle."""
        for position in range(count):
            if self.replay is None or not self.replay[1]:
                return
            ticket, ring = self.replay
            number, payload = ring.pop(0)
            if position not in holes or position == 0:
                self.follow(self.tracker.replayed(ticket, Frame(number, payload), self.now_ns))

    @precondition(lambda self: self.replay)
    @rule()
    def replay_ends(self) -> None:
        """All that is left is dropped, but the end marker arrives."""
        if self.replay is not None and not self.replay[1]:
            ticket, self.replay = self.replay[0], None
            self.follow(self.tracker.replay_ended(ticket, self.now_ns))

    @precondition(lambda self: self.is_harsh)
    @rule()
    def wait(self) -> None:
        """Time passes; a replay may have stopped without an end."""
        self.is_slow |= self.replay is not None
        self.now_ns += 11
        self.follow(self.tracker.tick(self.now_ns))

    @rule()
    def deliver(self) -> None:
        """The server takes what is pending."""
        self.index.deliver(self.outbox.take())

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def never_claims_what_was_not_announced(self) -> None:
        """No key comes from nowhere."""
        if hasattr(self, "engine"):
            assert set(self.index.held) <= self.engine.announced
            assert set(self.mapper.held_keys()) <= self.engine.announced

    @invariant()
    def books_are_in_order(self) -> None:
        """Blocks, keys and totals agree, and so does the server when nothing is pending."""
        if hasattr(self, "engine"):
            self.mapper.check_invariants()
            if self.outbox.is_empty:
                assert self.index.tiers() == self.mapper.held_keys()

    @rule()
    def settle(self) -> None:
        """Let everything arrive: then producer, server and engine agree."""
        self.finish_replays()
        self.publish("live", self.engine.remove_nothing())
        self.finish_replays()
        assert self.tracker.state == SyncState.LIVE
        assert self.tracker.waiting_batches == 0
        self.index.deliver(self.outbox.take())
        assert self.index.tiers() == self.mapper.held_keys()
        if not self.is_lossy and not self.tracker.is_incomplete:
            assert self.mapper.held_keys() == self.engine.truth()
        assert self.kept_alive() <= set(self.engine.truth())

    def kept_alive(self) -> set[tuple[str, int]]:
        """Return what is reported again and again, so that it never expires."""
        steps = self.mapper.live_set(include_doubtful=False)
        return {(run.adapter_id, key) for runs in steps for run in runs for key in run.keys}

    def finish_replays(self) -> None:
        """Let every replay come to its end without losses."""
        for _ in range(50):
            if self.replay is None and self.tracker.state == SyncState.LIVE:
                return
            if self.replay is None:
                self.wait()
                continue
            ticket, ring = self.replay
            while ring:
                number, payload = ring.pop(0)
                self.follow(self.tracker.replayed(ticket, Frame(number, payload), self.now_ns))
                if self.replay is None or self.replay[0] != ticket:
                    break
            else:
                self.replay = None
                self.follow(self.tracker.replay_ended(ticket, self.now_ns))
        raise AssertionError("replays never end")

    def held_blocks(self) -> list[tuple[int, int]]:
        """Return the held blocks in a fixed order, those that go first more than once."""
        return [*self.engine.blocks, *self.engine.leaves()[:2] * 5]

    def teardown(self) -> None:
        """Every life ends in agreement."""
        if hasattr(self, "engine"):
            self.settle()
