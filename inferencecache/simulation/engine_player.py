"""A whole simulated engine: its ranks, the steps it is told to do, and what it sends for them."""

from collections.abc import Iterable
from dataclasses import dataclass

from inferencecache.simulation import engine_script as script
from inferencecache.simulation.engine_event import EngineEvent
from inferencecache.simulation.engine_life import EngineLife, ExpectedKey, LifeRules
from inferencecache.simulation.engine_stream import EngineStream, Message, StreamRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """What a step makes the engine do on the wire.

    Attributes:
        rank: Whose socket.
        message: What to send, or None.
        wait_ms: How long to do nothing afterwards, in milliseconds.
        is_restart: Whether connections break, as when a process ends and another begins.
    """

    rank: int
    message: Message | None = None
    wait_ms: int = 0
    is_restart: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGauges:
    """What the engine's metrics page is made from.

    Attributes:
        usage_ratio: Used share of the cache of the fullest rank, 0 to 1.
        hit_tokens: Prompt tokens found cached.
        query_tokens: Prompt tokens looked up.
        running: Requests in work.
        waiting: Requests queued.
    """

    usage_ratio: float
    hit_tokens: int
    query_tokens: int
    running: int = 0
    waiting: int = 0


class EnginePlayer:
    """Does steps and keeps what each rank holds.

    Args:
        life: Sizes.
        stream: How messages are written.
        ranks: Data-parallel ranks, >= 1.

    Attributes:
        lives: Per rank, its cache.
        streams: Per rank, its messages.
    """

    def __init__(self, life: LifeRules, stream: StreamRules, ranks: int = 1) -> None:
        self.lives = [EngineLife(life, rank) for rank in range(ranks)]
        self.streams = [EngineStream(stream, rank) for rank in range(ranks)]

    def play(self, step: script.Step, ts: float) -> Emission:
        """Do one step.

        Args:
            step: What to do.
            ts: The engine's time in seconds since 1970.

        Returns:
            What goes out; nothing for what an engine does not announce.
        """
        life, stream = self.lives[step.rank], self.streams[step.rank]
        match step:
            case script.Wait(ms=wait_ms):
                return Emission(rank=step.rank, wait_ms=wait_ms)
            case script.Skip(count=count):
                for _ in range(count):
                    stream.burn()
                return Emission(rank=step.rank)
            case script.Duplicate():
                return Emission(rank=step.rank, message=stream.latest())
            case script.Restart():
                life.restart()
                stream.restart()
                return Emission(rank=step.rank, is_restart=True)
        events = self._happen(step, life)
        message = stream.publish(events, ts) if events else None
        return Emission(rank=step.rank, message=None if step.lost else message)

    @staticmethod
    def _happen(step: script.Step, life: EngineLife) -> list[EngineEvent]:
        """Change a rank's cache; return what it announces."""
        match step:
            case script.Serve():
                return life.serve(step.prompt)
            case script.Copy():
                return life.copy(step.prompt)
            case script.Offload(medium=medium):
                return life.offload(step.prompt, medium)
            case script.Remove(medium=medium, first_block=first_block):
                return life.remove(step.prompt, medium, first_block)
            case script.Evict(blocks=blocks):
                return life.evict(blocks)
        return life.clear()

    def gauges(self) -> EngineGauges:
        """Return the engine's load and counters now."""
        return EngineGauges(
            usage_ratio=max(life.usage_ratio for life in self.lives),
            hit_tokens=sum(life.hit_tokens for life in self.lives),
            query_tokens=sum(life.query_tokens for life in self.lives),
        )

    def expected(self) -> list[ExpectedKey]:
        """Return the keys an index must hold for all ranks together, sorted.

        A key that several ranks hold counts once, under the best tier.
        """
        best: dict[tuple[str, int], ExpectedKey] = {}
        for key in self._all_expected():
            name = (key.adapter_id, key.key)
            if name not in best or key.tier < best[name].tier:
                best[name] = key
        return sorted(best.values(), key=lambda key: (key.adapter_id, key.token_count, key.key))

    def _all_expected(self) -> Iterable[ExpectedKey]:
        return (key for life in self.lives for key in life.expected())
