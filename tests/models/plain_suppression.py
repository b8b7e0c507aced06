"""Suppression told again from the whole history at every question, rule by rule."""

from dataclasses import dataclass, field

SECOND = 1_000_000_000
THRESHOLDS = {"unresolved": 2, "unauthorized": 2, "missing_model": 3, "failure": 3}


@dataclass
class PlainEvent:
    """Something that was said about a subject.

    Attributes:
        what: ``tried``, ``untried``, ``busy`` or a kind of failure.
        now: When.
        picked: When its request was picked.
        jitter: What was drawn with it.
    """

    what: str
    now: int
    picked: int = 0
    jitter: float = 0.0


@dataclass
class PlainSubject:
    """All that was said since it last worked."""

    events: list[PlainEvent] = field(default_factory=list)

    def standing(self, now: int) -> str:  # noqa: C901, PLR0912 - one branch per rule
        """Return how it stands, by telling everything again."""
        begun, until, times, lease = None, 0, 0, None
        tried = 0
        counts: dict[str, int] = {}
        rest_until, rests = 0, 0
        for event in self.events:
            if event.what == "tried":
                tried, lease = event.now, event.now + 30 * SECOND
            elif event.what == "untried":
                lease = None if event.picked == tried else lease
            elif event.what == "busy":
                if not rests or event.picked >= rest_until:
                    rest_until = event.now + min(2**rests, 30) * SECOND
                    rests += 1
            elif begun is None or event.picked >= until:
                counts[event.what] = counts.get(event.what, 0) + 1
                if begun is not None or counts[event.what] >= THRESHOLDS[event.what]:
                    length = min(5 * 2**times, 300) * SECOND
                    begun, until = event.now, event.now + round(length * (1 + 0.2 * event.jitter))
                    times += 1
                    lease = None
        if begun is not None and now < until:
            return "suppressed"
        if now < rest_until:
            return "resting"
        if begun is None:
            return "clear"
        return "probing" if lease is not None and now < lease else "due"

    @property
    def qualifiers(self) -> set[str]:
        """Return what callers have said of its backend."""
        return {event.what for event in self.events} & {"unresolved", "unauthorized"}
