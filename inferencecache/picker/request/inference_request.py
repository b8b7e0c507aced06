"""What a body says, as far as routing cares."""

from enum import StrEnum
from typing import Final

import msgspec

from inferencecache.picker.bodies import Span


class Api(StrEnum):
    """The API a body is meant for, told by its shape alone: there is no path to go by."""

    CHAT_COMPLETIONS = "chat_completions"
    ANTHROPIC_MESSAGES = "anthropic_messages"
    COMPLETIONS = "completions"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"
    RERANK = "rerank"
    SCORE = "score"
    AMBIGUOUS_INPUT = "ambiguous_input"
    """An ``input`` that could be meant for several."""
    UNKNOWN = "unknown"
    """A model and nothing else that is known."""


class Affinity(msgspec.Struct, frozen=True, kw_only=True):
    """Texts by which a client ties requests together; empty where it gives none.

    Attributes:
        prompt_cache_key: As in the body.
        user: As in the body.
        safety_identifier: As in the body.
        session_id: As in the body.
        conversation: The id, given plainly or as an object.
        previous_response_id: As in the body.
        cache_salt: Keeps requests with another salt, or none, out of a shared cache.
    """

    prompt_cache_key: str = ""
    user: str = ""
    safety_identifier: str = ""
    session_id: str = ""
    conversation: str = ""
    previous_response_id: str = ""
    cache_salt: str = ""


NO_AFFINITY: Final = Affinity()
"""Of a body that gives none."""


class InferenceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed body.

    Attributes:
        api: What it is meant for.
        model: Its model; of several ``model`` keys the last, as parsers read them. Empty only where
            that was allowed.
        model_names: Every value of a top-level ``model``, in order, null as an empty text; none
            where all of them are null.
        model_spans: Where they stand, quotes included; where there is none, the empty span at
            which one can be put.
        is_stream: Whether the answer is to come in pieces.
        output_tokens_max: Limit of the answer, the largest where several are given; None where none
            is.
        affinity: Texts that tie requests together.
        prompt_bytes: Length of the longest prompt, about as it is in UTF-8; None if it is not
            known.
        prompt_tokens: Length of the longest prompt that is given as token ids; None if none is.
        has_several_prompts: Whether there are several.
    """

    api: Api
    model: str
    model_names: tuple[str, ...]
    model_spans: tuple[Span, ...]
    is_stream: bool = False
    output_tokens_max: int | None = None
    affinity: Affinity = NO_AFFINITY
    prompt_bytes: int | None = None
    prompt_tokens: int | None = None
    has_several_prompts: bool = False

    @property
    def lacks_model(self) -> bool:
        """Whether there is no ``model`` at all, or only null."""
        return not self.model_names
