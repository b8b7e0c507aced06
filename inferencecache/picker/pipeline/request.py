"""A request as plugins see it."""

from collections.abc import Mapping
from typing import Final

from inferencecache.picker.choice import Question
from inferencecache.picker.pipeline.attributes import WritableAttributes
from inferencecache.picker.qos import QosClass
from inferencecache.picker.request import InferenceRequest

_BYTES_PER_TOKEN: Final = 4
"""Of English text, about."""


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
        question: What came with it: the parsed body, the bytes, the pool that was named.
        attributes: What plugins say about the request as a whole.
        fairness_id: Whose share it counts against; at first its tenant.
        headers: What the caller passed on with its Pick, names in lower case.
    """

    __slots__ = ("attributes", "fairness_id", "headers", "key", "question")

    key: int
    question: Question
    attributes: WritableAttributes
    fairness_id: str
    headers: Mapping[str, str]

    def __init__(self, key: int, question: Question, attributes: WritableAttributes) -> None:
        self.attributes = attributes
        self.key = key
        self.question = question
        self.fairness_id = question.tenant
        self.headers = question.headers

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

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt: as given, or at four bytes each."""
        parsed = self.question.request
        if parsed.prompt_tokens is not None:
            return parsed.prompt_tokens
        length = parsed.prompt_bytes
        return -(-(self.question.content.length if length is None else length) // _BYTES_PER_TOKEN)
