"""Bodies and decisions as plain records: every rule spelt out, no heap, no table, no sharing."""

from dataclasses import dataclass

from inferencecache.settings.picker import PickerSettings


@dataclass
class PlainBody:
    """A body in one of five states."""

    declared: int | None
    deadline: int
    size: int = 0
    state: str = "uploading"
    stream_id: int = 0


@dataclass
class PlainDecision:
    """A decision about a body."""

    body: PlainBody
    endpoint: str
    deadline: int
    first: bool = False
    ended: bool = False
    turn: int = 0


class PlainPicker:
    """What the picker holds, worked out anew at every call."""

    def __init__(self, settings: PickerSettings) -> None:
        self.settings = settings
        self.bodies: list[PlainBody] = []
        self.decisions: dict[int, PlainDecision] = {}
        self.used: dict[int, int] = {}
        self.turns = 0

    def finished(self) -> list[int]:
        """Return whose final report has come, in the order in which they came."""
        names = [name for name, decision in self.decisions.items() if decision.ended]
        return sorted(names, key=lambda name: self.decisions[name].turn)

    def expire(self, now: int) -> None:
        """Let time do its work."""
        for body in self.bodies:
            if body.state in {"uploading", "complete", "picked"} and body.deadline <= now:
                body.state = "released"
        for name, decision in list(self.decisions.items()):
            if decision.deadline > now:
                continue
            if decision.body.state == "pulled":
                decision.deadline = now + self.settings.decision_ttl_ns
            else:
                decision.body.state = "released"
                del self.decisions[name]
        for name, until in list(self.used.items()):
            if until <= now:
                del self.used[name]

    def live(self) -> list[PlainBody]:
        """Return the bodies that still hold bytes."""
        return [body for body in self.bodies if body.state != "released"]

    def buffered(self) -> int:
        """Return the bytes of all of them."""
        return sum(body.size for body in self.live())

    def open(self, declared: int | None, now: int) -> PlainBody | None:
        """Begin an upload, or refuse."""
        self.expire(now)
        too_long = declared is not None and declared > self.settings.body_bytes_max
        if too_long or len(self.live()) >= self.settings.bodies_max:
            return None
        body = PlainBody(declared, now + self.settings.upload_idle_ns)
        self.bodies.append(body)
        return body

    def append(self, body: PlainBody, size: int, now: int) -> bool:
        """Add a chunk, or end the upload."""
        self.expire(now)
        if body.state != "uploading":
            return False
        total = body.size + size
        if (
            (body.declared is not None and total > body.declared)
            or size > self.settings.chunk_bytes_max
            or total > self.settings.body_bytes_max
            or self.buffered() + size > self.settings.buffered_bytes_max
        ):
            body.state = "released"
            return False
        body.size = total
        body.deadline = now + self.settings.upload_idle_ns
        return True

    def complete(self, body: PlainBody, now: int) -> bool:
        """Close an upload, or end it."""
        self.expire(now)
        if body.state != "uploading":
            return False
        if body.declared not in (None, body.size):
            body.state = "released"
            return False
        body.state, body.deadline = "complete", now + self.settings.body_ttl_ns
        return True

    def retract(self, body: PlainBody) -> None:
        """Discard an upload unless a Pick has had it."""
        if body.state in {"uploading", "complete"}:
            body.state = "released"

    def pick(self, stream_id: int, now: int) -> str:
        """Return what a Pick of the id meets."""
        self.expire(now)
        if stream_id in self.used:
            return "used"
        for body in self.bodies:
            if body.stream_id == stream_id and body.state == "complete":
                body.state, body.deadline = "picked", now + self.settings.unpulled_ttl_ns
                if len(self.used) >= self.settings.decisions_max:
                    del self.used[next(iter(self.used))]
                self.used[stream_id] = now + self.settings.decision_ttl_ns
                return "picked"
        return "unknown"

    def settle(self, body: PlainBody, response_id: int, endpoint: str, now: int) -> None:
        """Remember a decision."""
        self.expire(now)
        if len(self.decisions) >= self.settings.decisions_max:
            name = next(iter(self.finished() or self.decisions))
            evicted = self.decisions.pop(name)
            if evicted.body.state == "picked":
                evicted.body.state = "released"
        deadline = now + self.settings.decision_ttl_ns
        self.decisions[response_id] = PlainDecision(body, endpoint, deadline)

    def pull(self, response_id: int, now: int) -> bool:
        """Give the body away, once."""
        self.expire(now)
        decision = self.decisions.get(response_id)
        if decision is None or decision.body.state != "picked":
            return False
        decision.body.state = "pulled"
        return True

    def first(self, response_id: int, now: int) -> bool:
        """Take a first report."""
        self.expire(now)
        decision = self.decisions.get(response_id)
        if decision is None or decision.first:
            return False
        decision.first = True
        if not decision.ended:
            decision.deadline = now + self.settings.decision_ttl_ns
        return True

    def final(self, response_id: int, now: int) -> bool:
        """Take a final report."""
        self.expire(now)
        decision = self.decisions.get(response_id)
        if decision is None or decision.ended:
            return False
        self.turns += 1
        decision.ended, decision.turn = True, self.turns
        decision.deadline = now + self.settings.ended_ttl_ns
        return True

    def abort(self, response_id: int, now: int) -> bool:
        """Forget a decision."""
        self.expire(now)
        decision = self.decisions.pop(response_id, None)
        if decision is None:
            return False
        held = decision.body.state in {"picked", "pulled"}
        decision.body.state = "released"
        return held or not decision.ended

    def in_flight(self) -> dict[str, int]:
        """Count what has not ended by endpoint."""
        counts: dict[str, int] = {}
        for decision in self.decisions.values():
            if not decision.ended:
                counts[decision.endpoint] = counts.get(decision.endpoint, 0) + 1
        return counts
