"""The seam for server-side tokenization; nothing stands behind it by default.

The core never waits. It starts a tokenization and, where the result is not there yet, hands the
running one to whoever drives the lookup; the driver waits in its own way and comes back.
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple, Protocol


class Tokenization(Protocol):
    """One prompt on its way to token ids."""

    def is_done(self) -> bool:
        """Return whether the work has ended, well or not."""
        ...

    def token_ids(self) -> Sequence[int]:
        """Return the tokens once done; empty when it failed."""
        ...

    def wait(self, timeout_ns: int) -> Awaitable[None]:
        """Return something to await that ends when the work does, or after *timeout_ns*."""
        ...


class Wait(NamedTuple):
    """What a lookup waits for before it can go on.

    Attributes:
        work: The running tokenization.
        timeout_ns: How long it may be waited for, in nanoseconds, >= 0.
    """

    work: Tokenization
    timeout_ns: int


class Tokenizer(Protocol):
    """Turns one user turn into the token ids an engine would see."""

    def start(self, model_id: str, prompt_text: str) -> Tokenization | None:
        """Begin tokenizing *prompt_text* as a single ``user`` message.

        The model's chat template is applied, with the generation prompt at the end.

        Args:
            model_id: Looked up among the loaded tokenizers, never used as a path.
            prompt_text: The text of the turn.

        Returns:
            The running work, or None where the model has no tokenizer.
        """
        ...


class TokenizationSlots:
    """Bounds how many tokenizations run at one time, abandoned ones included.

    Args:
        limit: Most that may run, >= 1.
    """

    __slots__ = ("_limit", "_running")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._running: list[Tokenization] = []

    def is_full(self) -> bool:
        """Return whether one more would be too many."""
        self._running = [work for work in self._running if not work.is_done()]
        return len(self._running) >= self._limit

    def take(self, work: Tokenization) -> None:
        """Count *work* until it is done."""
        self._running.append(work)
