"""A request as plugins see it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Question
from inferencecache.picker.pipeline.attributes import WritableAttributes
from inferencecache.picker.qos import QosClass
from inferencecache.picker.request import InferenceRequest

_BYTES_PER_TOKEN: Final = 4
"""Of English text, about."""
_NO_CONTENT: Final = Rope()


class Request:
    """One request on its way through the pipeline.

    PreAdmitters may set :attr:`fairness_id`, :attr:`headers` and :attr:`attributes`. Behind them
    everything stands still: an attempt to change it raises AttributeError.

    Args:
        key: See below.
        question: What came with it.
        attributes: Where to keep what plugins say.

    Attributes:
        key: Unique in this process, for plugins that remember something until the end.
        prompt_tokens: Tokens of the prompt: as given, or at four bytes each.
        question: What came with it: the parsed body, the pool that was named, and, until
            PreRequest plugins have run, the bytes of the body.
        attributes: What plugins say about the request as a whole.
        fairness_id: Whose share it counts against; at first its tenant.
        headers: What the caller passed on with its Pick, names in lower case.
    """

    __slots__ = ("attributes", "fairness_id", "headers", "key", "prompt_tokens", "question")

    key: int
    question: Question
    attributes: WritableAttributes
    fairness_id: str
    headers: Mapping[str, str]
    prompt_tokens: int

    def __init__(self, key: int, question: Question, attributes: WritableAttributes) -> None:
        self.attributes = attributes
        self.key = key
        self.question = question
        self.fairness_id = question.tenant
        self.headers = question.headers
        self.prompt_tokens = _prompt_tokens(question)

    def __setattr__(self, name: str, value: object) -> None:
        attributes = getattr(self, "attributes", None)
        if attributes is not None and attributes.is_closed:
            raise AttributeError(f"{name}: a request stands still behind its PreAdmitters")
        object.__setattr__(self, name, value)

    @property
    def parsed(self) -> InferenceRequest:
        """What the body says."""
        return self.question.request

    @property
    def requested_model(self) -> str:
        """The model as the body names it."""
        return self.question.request.model

    @property
    def tenant(self) -> str:
        """Whose request it is."""
        return self.question.tenant

    @property
    def qos(self) -> QosClass:
        """How long it can wait."""
        return self.question.qos

    @property
    def request_id(self) -> str:
        """The caller's name for it, which may be empty and need not be unique."""
        return self.question.client_request_id

    def let_go_of_body(self) -> None:
        """Forget the bytes of the body, which must not live as long as the decision does."""
        object.__setattr__(self, "question", replace(self.question, content=_NO_CONTENT))


def _prompt_tokens(question: Question) -> int:
    parsed = question.request
    if parsed.prompt_tokens is not None:
        return parsed.prompt_tokens
    length = question.content.length if parsed.prompt_bytes is None else parsed.prompt_bytes
    return -(-length // _BYTES_PER_TOKEN)
