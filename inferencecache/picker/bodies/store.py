"""All bodies of one server: budgets, time limits, and who may have which.

Rules of this file: every change goes through the table of ``state``; bytes are charged when they
arrive and given back exactly once, on the way to RELEASED; time limits hold from the moment they
are over, not from the next tick.

Example: open, append, append, complete gives a stream_id; pick hands the body to a decision, pull
to the one PullBody it gets, release ends it.
"""

from typing import Final

from inferencecache.picker.bodies.body import Body
from inferencecache.picker.bodies.deadlines import Deadlines
from inferencecache.picker.bodies.ids import NewId, fresh_id
from inferencecache.picker.bodies.rope import Chunk, Rope
from inferencecache.picker.bodies.state import BodyEvent, BodyState, follow
from inferencecache.picker.bodies.used_ids import UsedIds
from inferencecache.picker.faults import (
    BudgetError,
    DrainingError,
    IdleUploadError,
    LengthError,
    UnknownIdError,
    UsedBodyError,
)
from inferencecache.settings.picker import PickerSettings

_STREAM_ID: Final = "body_stream_id"


class BodyStore:
    """Keeps bodies within their limits.

    Args:
        settings: The limits.
        new_id: Draws ids.

    Attributes:
        buffered_bytes: What all bodies count against the budget.
        expired: Bodies whose time was over, by the state they were in.
        is_draining: Whether new uploads are refused.
    """

    def __init__(self, settings: PickerSettings, new_id: NewId) -> None:
        self._settings = settings
        self._new_id = new_id
        self._bodies: dict[int, Body] = {}
        self._by_stream_id: dict[int, Body] = {}
        self._used = UsedIds(settings.decisions_max, settings.decision_ttl_ns)
        self._deadlines = Deadlines()
        self._next_number = 0
        self.buffered_bytes = 0
        self.expired = dict.fromkeys(BodyState, 0)
        self.is_draining = False

    def __len__(self) -> int:
        """Return how many bodies there are, from their opening to their release."""
        return len(self._bodies)

    def open(self, declared_bytes: int | None, now_ns: int) -> Body:
        """Begin an upload.

        Args:
            declared_bytes: The announced length, None if none was.
            now_ns: Monotonic time.

        Raises:
            DrainingError: The server is about to end.
            BudgetError: The announced length, or the number of bodies, is too high.
        """
        if self.is_draining:
            raise DrainingError
        self.expire(now_ns)
        if declared_bytes is not None and declared_bytes > self._settings.body_bytes_max:
            raise BudgetError("declared bytes of a body", self._settings.body_bytes_max)
        if len(self._bodies) >= self._settings.bodies_max:
            raise BudgetError("bodies at a time", self._settings.bodies_max)
        self._next_number += 1
        body = Body(self._next_number, declared_bytes)
        self._bodies[body.number] = body
        self._deadlines.set(body.number, now_ns + self._settings.upload_idle_ns)
        return body

    def append(self, body: Body, chunk: Chunk, now_ns: int) -> None:
        """Add *chunk* to an upload; whatever is wrong with it ends the upload.

        Raises:
            IdleUploadError: The upload has ended meanwhile.
            BudgetError: The chunk, the body or all bodies become too large.
            LengthError: More has arrived than was announced.
        """
        self.expire(now_ns)
        if body.state is not BodyState.UPLOADING:
            raise IdleUploadError
        try:
            self._check_room(body, len(chunk))
        except (BudgetError, LengthError):
            self.retract(body)
            raise
        body.builder.append(chunk)
        body.charged_bytes += len(chunk)
        self.buffered_bytes += len(chunk)
        self._deadlines.set(body.number, now_ns + self._settings.upload_idle_ns)

    def complete(self, body: Body, now_ns: int) -> int:
        """Close an upload and give it a name.

        Returns:
            The stream_id.

        Raises:
            IdleUploadError: The upload has ended meanwhile.
            LengthError: Less has arrived than was announced.
        """
        self.expire(now_ns)
        if body.state is not BodyState.UPLOADING:
            raise IdleUploadError
        received = body.builder.length
        if body.declared_bytes not in (None, received):
            self.retract(body)
            raise LengthError(body.declared_bytes or 0, received)
        self._move(body, BodyEvent.HALF_CLOSE)
        body.content = body.builder.finish()
        body.stream_id = fresh_id(self._new_id, self._by_stream_id, self._used)
        self._by_stream_id[body.stream_id] = body
        self._deadlines.set(body.number, now_ns + self._settings.body_ttl_ns)
        return body.stream_id

    def retract(self, body: Body) -> bool:
        """Discard an upload that was reset; one that was picked already stays.

        Returns:
            Whether there was anything to discard.
        """
        return self._move(body, BodyEvent.RETRACT)

    def pick(self, stream_id: int, now_ns: int) -> Body:
        """Hand out the body that *stream_id* names, for good.

        Raises:
            UnknownIdError: There is none, or its time is over.
            UsedBodyError: It was handed out before.
        """
        self.expire(now_ns)
        if stream_id in self._used:
            raise UsedBodyError
        body = self._by_stream_id.get(stream_id)
        if body is None:
            raise UnknownIdError(_STREAM_ID)
        self._move(body, BodyEvent.PICK)
        del self._by_stream_id[stream_id]
        self._used.add(stream_id, now_ns)
        self._deadlines.set(body.number, now_ns + self._settings.unpulled_ttl_ns)
        return body

    def pull(self, body: Body, now_ns: int) -> None:
        """Give a picked body to its PullBody.

        Raises:
            UnknownIdError: It was given away already, or is gone.
        """
        self.expire(now_ns)
        if not self._move(body, BodyEvent.PULL):
            raise UnknownIdError("response_id")
        self._deadlines.drop(body.number)

    def release(self, body: Body) -> bool:
        """Let the bytes of a picked body go.

        Returns:
            Whether there were any to let go.
        """
        return self._move(body, BodyEvent.RELEASE)

    def expire(self, now_ns: int) -> None:
        """Release what has waited for too long, and forget old ids."""
        for number in self._deadlines.due(now_ns):
            body = self._bodies[number]
            self.expired[body.state] += 1
            self._move(body, BodyEvent.EXPIRE)
        self._used.expire(now_ns)

    def _check_room(self, body: Body, more_bytes: int) -> None:
        settings = self._settings
        length = body.charged_bytes + more_bytes
        if body.declared_bytes is not None and length > body.declared_bytes:
            raise LengthError(body.declared_bytes, length)
        for what, size, limit in (
            ("bytes of a chunk", more_bytes, settings.chunk_bytes_max),
            ("bytes of a body", length, settings.body_bytes_max),
            ("bytes of all bodies", self.buffered_bytes + more_bytes, settings.buffered_bytes_max),
        ):
            if size > limit:
                raise BudgetError(what, limit)

    def _move(self, body: Body, event: BodyEvent) -> bool:
        """Let *event* happen to *body*, if it can."""
        state = follow(body.state, event)
        if state is None:
            return False
        body.state = state
        if state is BodyState.RELEASED:
            self._free(body)
        return True

    def _free(self, body: Body) -> None:
        self._deadlines.drop(body.number)
        del self._bodies[body.number]
        self._by_stream_id.pop(body.stream_id, None)
        self.buffered_bytes -= body.charged_bytes
        body.charged_bytes = 0
        body.builder.finish()
        body.content = Rope()
        notify, body.on_release = body.on_release, None
        if notify is not None:
            notify()
