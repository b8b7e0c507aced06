"""The time that a simulated engine takes: one prefill after the other, many decodes beside it.

Use it with any clock: hand in the time, ask when something is due, and come back then::

    engine.submit(job, now_ns)
    while (due_ns := engine.due_ns) is not None:   # wait until then, or jump there
        for step in engine.advance(due_ns):
            ...                                    # Computed, FirstToken, Finished

Rules of this file
    1. Prompts are computed one at a time, in the order of arrival, at ``prefill_tokens_per_s``;
       what the cache holds when a prompt's turn comes is not computed, but its last token always.
    2. A prompt's blocks are cached when it is computed; its first token comes ``base_ns`` later,
       in which the engine computes the next prompt.
    3. Every further token of the answer takes ``decode_token_ns``, however many answers there are.
       At most ``concurrency_max`` requests are computed or answered at a time; others wait.
    4. Answers are not cached, and memory that running requests hold is not counted.

Worked example, 8,000 tokens/s, base 50 ms, 20 ms a token: a prompt of 4,000 tokens and one of 800
arrive together, and 3 tokens are wanted of each::

    0 ms      both arrive; the first is computed until 500 ms, the second from then until 600 ms
    550 ms    first token of the first; it is finished at 590 ms
    650 ms    first token of the second; it is finished at 690 ms
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Generic, Protocol, TypeVar

from inferencecache.clock import NS_PER_S

PromptT = TypeVar("PromptT")
PromptT_contra = TypeVar("PromptT_contra", contravariant=True)
ChangeT = TypeVar("ChangeT")
ChangeT_co = TypeVar("ChangeT_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeRules:
    """How fast an engine is.

    Attributes:
        prefill_tokens_per_s: Prompt tokens that it computes in a second, > 0.
        base_ns: From the end of a prompt's computation to its first token, >= 0.
        decode_token_ns: Between two tokens of an answer, >= 0.
        concurrency_max: Most requests computed or answered at a time, >= 1.
    """

    prefill_tokens_per_s: int
    base_ns: int
    decode_token_ns: int
    concurrency_max: int


class EngineCache(Protocol[PromptT_contra, ChangeT_co]):
    """The prefix cache of an engine."""

    def matched_tokens(self, prompt: PromptT_contra, /) -> int:
        """Return how many leading tokens of *prompt* are cached, without using them."""
        ...

    def store(self, prompt: PromptT_contra, /) -> ChangeT_co:
        """Cache a computed prompt, and return what that changed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Generic[PromptT]):
    """A request as an engine is given it.

    Attributes:
        number: Its name, unique among those that the engine has.
        prompt: What the cache knows it by.
        prompt_tokens: Length of the prompt, >= 1.
        output_tokens: Length of the answer; one token is made in any case.
    """

    number: int
    prompt: PromptT
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Computed(Generic[PromptT, ChangeT]):
    """A prompt is computed.

    Attributes:
        job: Whose.
        at_ns: When.
        cached_tokens: Tokens that were not computed, because the cache held them.
        change: What is cached now, and what is not any more.
    """

    job: Job[PromptT]
    at_ns: int
    cached_tokens: int
    change: ChangeT


@dataclass(frozen=True, slots=True)
class FirstToken(Generic[PromptT]):
    """The first token of an answer goes out.

    Attributes:
        job: Whose.
        at_ns: When.
    """

    job: Job[PromptT]
    at_ns: int


@dataclass(frozen=True, slots=True)
class Finished(Generic[PromptT]):
    """The last token of an answer has gone out.

    Attributes:
        job: Whose.
        at_ns: When.
    """

    job: Job[PromptT]
    at_ns: int


Step = Computed[PromptT, ChangeT] | FirstToken[PromptT] | Finished[PromptT]
"""Something that an engine does."""

_Due = tuple[int, int, bool, Job[PromptT]]
"""When, in which order among equals, whether it is the end, and of what."""


class EngineCompute(Generic[PromptT, ChangeT]):
    """One engine's work, in whatever time its owner keeps.

    Args:
        rules: How fast it is.
        cache: What it need not compute.
    """

    def __init__(self, rules: ComputeRules, cache: EngineCache[PromptT, ChangeT]) -> None:
        self._rules = rules
        self._cache = cache
        self._waiting: deque[Job[PromptT]] = deque()
        self._computing: Job[PromptT] | None = None
        self._cached_tokens = 0
        self._computed_ns = 0
        self._answers: list[_Due[PromptT]] = []
        self._order = 0

    @property
    def waiting(self) -> int:
        """Requests that are not begun."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Requests that are computed or answered."""
        return len(self._answers) + (self._computing is not None)

    @property
    def due_ns(self) -> int | None:
        """When the next step is due; None while there is nothing to do."""
        answer_ns = self._answers[0][0] if self._answers else None
        if self._computing is None:
            return answer_ns
        return self._computed_ns if answer_ns is None else min(self._computed_ns, answer_ns)

    def submit(self, job: Job[PromptT], now_ns: int) -> None:
        """Take a request in, behind those that wait.

        Args:
            job: The request.
            now_ns: The time, never before that of an earlier call.
        """
        self._waiting.append(job)
        self._begin(now_ns)

    def advance(self, now_ns: int) -> list[Step[PromptT, ChangeT]]:
        """Return what happens until *now_ns*, in order.

        Complexity: O(log requests) per step.
        """
        steps: list[Step[PromptT, ChangeT]] = []
        while (due_ns := self.due_ns) is not None and due_ns <= now_ns:
            if self._computing is not None and self._computed_ns == due_ns:
                steps.append(self._computed(self._computing))
            else:
                steps.append(self._answered())
            self._begin(due_ns)
        return steps

    def cancel(self, number: int, now_ns: int) -> None:
        """Forget a request whose caller has gone; one that is being computed stops there.

        Complexity: O(requests).
        """
        self._waiting = deque(job for job in self._waiting if job.number != number)
        self._answers = [due for due in self._answers if due[3].number != number]
        heapify(self._answers)
        if self._computing is not None and self._computing.number == number:
            self._computing = None
        self._begin(now_ns)

    def lose_all(self) -> Sequence[Job[PromptT]]:
        """Forget every request, as a process that ends does, and return them.

        Complexity: O(requests).
        """
        computing = () if self._computing is None else (self._computing,)
        lost = [*(due[3] for due in sorted(self._answers)), *computing, *self._waiting]
        self._answers.clear()
        self._waiting.clear()
        self._computing = None
        return lost

    def _begin(self, now_ns: int) -> None:
        """Compute the next prompt if nothing is in its way."""
        if self._computing is not None or not self._waiting:
            return
        if len(self._answers) >= self._rules.concurrency_max:
            return
        job = self._computing = self._waiting.popleft()
        self._cached_tokens = min(self._cache.matched_tokens(job.prompt), job.prompt_tokens - 1)
        tokens = job.prompt_tokens - self._cached_tokens
        self._computed_ns = now_ns + tokens * NS_PER_S // self._rules.prefill_tokens_per_s

    def _computed(self, job: Job[PromptT]) -> Computed[PromptT, ChangeT]:
        change = self._cache.store(job.prompt)
        self._computing = None
        self._due(self._computed_ns + self._rules.base_ns, job, is_end=False)
        return Computed(job, self._computed_ns, self._cached_tokens, change)

    def _answered(self) -> FirstToken[PromptT] | Finished[PromptT]:
        at_ns, _, is_end, job = heappop(self._answers)
        if is_end:
            return Finished(job, at_ns)
        tokens = max(0, job.output_tokens - 1)
        self._due(at_ns + tokens * self._rules.decode_token_ns, job, is_end=True)
        return FirstToken(job, at_ns)

    def _due(self, at_ns: int, job: Job[PromptT], *, is_end: bool) -> None:
        self._order += 1
        heappush(self._answers, (at_ns, self._order, is_end, job))
