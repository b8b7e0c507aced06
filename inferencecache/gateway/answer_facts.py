"""What documents of the usual APIs say about an answer: who gave it, and how many tokens it took.

Rules of this file: documents come from engines and providers, so nothing in them is trusted to be
what it should be. A number that is none counts as absent; absent is not 0 for cached tokens.
"""

from dataclasses import dataclass
from typing import Final

_COUNT_MAX: Final = 2**32 - 1
_INNER: Final = ("response", "message")
"""Members of events that hold the document they are about."""


@dataclass(slots=True, kw_only=True)
class AnswerFacts:
    """What was said so far; later documents of one answer add to earlier ones.

    Attributes:
        model: The model that answered, empty if nobody has said.
        prompt_tokens: Tokens of the prompt, cached ones included.
        completion_tokens: Tokens of the answer.
        cached_tokens: Tokens of the prompt that were in a cache; None if nobody has said.
    """

    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None

    def learn(self, document: object) -> None:
        """Take over what *document* says.

        >>> facts = AnswerFacts()
        >>> facts.learn({"model": "m", "usage": {"prompt_tokens": 7, "completion_tokens": 2,
        ...     "prompt_tokens_details": {"cached_tokens": 4}}})
        >>> facts
        AnswerFacts(model='m', prompt_tokens=7, completion_tokens=2, cached_tokens=4)
        """
        if not isinstance(document, dict):
            return
        model = document.get("model")
        if isinstance(model, str) and model:
            self.model = model
        usage = document.get("usage")
        if isinstance(usage, dict):
            self._learn_usage(usage)
        for name in _INNER:
            inner = document.get(name)
            if isinstance(inner, dict) and not _INNER_NAMES & inner.keys():
                self.learn(inner)

    def _learn_usage(self, usage: dict[str, object]) -> None:
        """Read OpenAI's two ways of counting, and Anthropic's, which sets cached tokens apart."""
        read, written = (_count(usage.get(f"cache_{kind}_input_tokens")) for kind in _CACHE_KINDS)
        prompt = _count(usage.get("prompt_tokens"))
        if prompt is None:
            prompt = _count(usage.get("input_tokens"))
            if prompt is not None:
                prompt = min(prompt + (read or 0) + (written or 0), _COUNT_MAX)
        completion = _count(usage.get("completion_tokens"))
        if completion is None:
            completion = _count(usage.get("output_tokens"))
        cached = read
        for name in ("prompt_tokens_details", "input_tokens_details"):
            details = usage.get(name)
            if isinstance(details, dict):
                cached = _either(_count(details.get("cached_tokens")), cached)
        self.prompt_tokens = _either(prompt, self.prompt_tokens) or 0
        self.completion_tokens = _either(completion, self.completion_tokens) or 0
        self.cached_tokens = _either(cached, self.cached_tokens)


_INNER_NAMES: Final = frozenset(_INNER)
_CACHE_KINDS: Final = ("read", "creation")


def _count(value: object) -> int | None:
    """Return *value* if it can be a number of tokens."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= _COUNT_MAX else None  # type: ignore[operator, return-value] # it is an int here


def _either(first: int | None, second: int | None) -> int | None:
    return second if first is None else first
