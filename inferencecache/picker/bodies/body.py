"""One body: its bytes, its state, and what its sender said about it."""

from collections.abc import Callable

from inferencecache.picker.bodies.rope import Rope, RopeBuilder
from inferencecache.picker.bodies.state import BodyState


class Body:
    """A request body; only the store that opened it changes it.

    Args:
        number: Tells it from others inside the store; never leaves the process.
        declared_bytes: The length its sender has announced, None if none was.

    Attributes:
        state: Where it is in its life.
        stream_id: Its name for callers, 0 before it is complete.
        content: Its bytes once it is complete; empty when they are gone.
        charged_bytes: What it counts against the budget.
        client_request_id: Its sender's name for the request, shortened; empty if it gave none.
        on_release: Called once when its bytes go while somebody hands it out.
    """

    __slots__ = (
        "builder",
        "charged_bytes",
        "client_request_id",
        "content",
        "declared_bytes",
        "number",
        "on_release",
        "state",
        "stream_id",
    )

    def __init__(self, number: int, declared_bytes: int | None) -> None:
        self.number = number
        self.declared_bytes = declared_bytes
        self.state = BodyState.UPLOADING
        self.stream_id = 0
        self.builder = RopeBuilder()
        self.content = Rope()
        self.charged_bytes = 0
        self.client_request_id = ""
        self.on_release: Callable[[], None] | None = None

    @property
    def is_released(self) -> bool:
        """Whether its bytes are gone."""
        return self.state is BodyState.RELEASED
