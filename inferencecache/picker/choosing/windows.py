"""Whether a request fits into a context window.

A prompt of token ids is counted. Any other is estimated from its bytes, and an estimate keeps a
request away only from a window that it exceeds by far.
"""

from collections.abc import Mapping
from typing import NamedTuple

from inferencecache.picker.fleet import Candidate
from inferencecache.picker.request import InferenceRequest
from inferencecache.settings.picker_choice import PickerChoiceSettings


class ContextNeed(NamedTuple):
    """What a request asks of a context window.

    Attributes:
        tokens: Of the prompt, for certain or as far as it counts, and of the answer together.
        is_exact: Whether the prompt was counted.
    """

    tokens: int
    is_exact: bool

    def fits(self, window: int | None) -> bool:
        """Return whether it fits into *window*; None is a window that nobody has declared."""
        return window is None or self.tokens <= window


def context_need(request: InferenceRequest, settings: PickerChoiceSettings) -> ContextNeed:
    """Return what *request* needs; an answer without a limit needs nothing.

    >>> from inferencecache.picker.request import Api
    >>> request = InferenceRequest(
    ...     api=Api.COMPLETIONS, model="m", model_names=("m",), model_spans=(), prompt_bytes=4_000
    ... )
    >>> context_need(request, PickerChoiceSettings()).tokens
    800
    """
    answer = request.output_tokens_max or 0
    estimate = (request.prompt_bytes or 0) / settings.bytes_per_token
    estimated, counted = int(estimate * settings.estimate_share), request.prompt_tokens
    if counted is not None and counted >= estimated:
        return ContextNeed(counted + answer, is_exact=True)
    return ContextNeed(estimated + answer, is_exact=False)


class CountedNeed(NamedTuple):
    """What a request asks of context windows, now that somebody has counted its prompt.

    Attributes:
        most: Where it asks for most, and where nobody has counted.
        own: By the candidate's name, where tokenizers differ.
    """

    most: ContextNeed
    own: Mapping[str, ContextNeed]

    def of(self, candidate: Candidate) -> ContextNeed:
        """Return what it asks of *candidate*."""
        return self.own.get(candidate.name, self.most)


def counted_need(
    request: InferenceRequest, prompt_tokens: int, lengths: Mapping[str, int]
) -> CountedNeed:
    """Return what *request* needs.

    Args:
        request: Says how long its answer may be.
        prompt_tokens: Length of its prompt, the largest if there are several.
        lengths: The others by the candidate's name.
    """
    answer = request.output_tokens_max or 0
    return CountedNeed(
        ContextNeed(prompt_tokens + answer, is_exact=True),
        {name: ContextNeed(length + answer, is_exact=True) for name, length in lengths.items()},
    )


def prompt_tokens_of(
    request: InferenceRequest, settings: PickerChoiceSettings, believed_tokens: int | None = None
) -> int:
    """Return the length of the prompt, as given in token ids or else estimated from its bytes.

    Of several prompts, some of them texts and some ids, the longest counts.

    Args:
        request: Holds it.
        settings: How many bytes are believed to be a token.
        believed_tokens: What its characters come to, where somebody has read them.

    >>> from inferencecache.picker.request import Api
    >>> request = InferenceRequest(
    ...     api=Api.COMPLETIONS, model="m", model_names=("m",), model_spans=(), prompt_bytes=4_000
    ... )
    >>> prompt_tokens_of(request, PickerChoiceSettings())
    1000
    >>> prompt_tokens_of(request, PickerChoiceSettings(), believed_tokens=990)
    990
    """
    if believed_tokens is not None and not request.has_several_prompts:
        return believed_tokens
    estimated = -(-(request.prompt_bytes or 0) // settings.bytes_per_token)
    return max(request.prompt_tokens or 0, estimated, believed_tokens or 0)
