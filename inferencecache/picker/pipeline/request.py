"""A request as plugins see it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import PoolName, Question
from inferencecache.picker.pipeline.attributes import WritableAttributes
from inferencecache.picker.qos import QosClass
from inferencecache.picker.request import InferenceRequest

_NO_CONTENT: Final = Rope()


class Request:
    """One request on its way through the pipeline.

    PreAdmitters may set :attr:`fairness_id` and :attr:`headers`, and write :attr:`attributes`;
    behind them an attempt to do so raises AttributeError. Nothing else is for plugins to change.

    Args:
        key: See below.
        question: What came with it.
        attributes: Where to keep what plugins say.
        bytes_per_token: How long a token of a text is believed to be.

    Attributes:
        key: Unique in this process, for plugins that remember something until the end.
        request_id: The caller's name for it, which may be empty and need not be unique.
        parsed: What the body says.
        content: The bytes of the body, until PreRequest plugins have run; empty from then on.
        tenant: Whose request it is; the empty text is a tenant like any other.
        qos: How long it can wait.
        pool: Where it is to be served; None for everything that is served.
        prompt_tokens: Tokens of the prompt: as given, or as its bytes are believed to be.
        attributes: What plugins say about the request as a whole.
    """

    __slots__ = (
        "_fairness_id",
        "_headers",
        "attributes",
        "content",
        "key",
        "parsed",
        "pool",
        "prompt_tokens",
        "qos",
        "request_id",
        "tenant",
    )

    def __init__(
        self,
        key: int,
        question: Question,
        attributes: WritableAttributes,
        bytes_per_token: int,
    ) -> None:
        self.key = key
        self.request_id = question.client_request_id
        self.parsed: InferenceRequest = question.request
        self.content: Rope = question.content
        self.tenant = question.tenant
        self.qos: QosClass = question.qos
        self.pool: PoolName | None = question.pool
        self.prompt_tokens = _prompt_tokens(question, bytes_per_token)
        self.attributes = attributes
        self._fairness_id = question.tenant
        self._headers = question.headers

    @property
    def requested_model(self) -> str:
        """The model as the body names it."""
        return self.parsed.model

    @property
    def fairness_id(self) -> str:
        """Whose share it counts against; at first its tenant."""
        return self._fairness_id

    @fairness_id.setter
    def fairness_id(self, fairness_id: str) -> None:
        self._check_open("fairness_id")
        self._fairness_id = fairness_id

    @property
    def headers(self) -> Mapping[str, str]:
        """What the caller passed on with its Pick, names in lower case; set them as a whole."""
        return self._headers

    @headers.setter
    def headers(self, headers: Mapping[str, str]) -> None:
        self._check_open("headers")
        self._headers = MappingProxyType(dict(headers))

    def let_go_of_body(self) -> None:
        """Forget the bytes of the body, which must not live as long as the decision does."""
        self.content = _NO_CONTENT

    def _check_open(self, name: str) -> None:
        if self.attributes.is_closed:
            raise AttributeError(f"{name}: a request stands still behind its PreAdmitters")


def _prompt_tokens(question: Question, bytes_per_token: int) -> int:
    parsed = question.request
    if parsed.prompt_tokens is not None and parsed.prompt_bytes is None:
        return parsed.prompt_tokens
    length = question.content.length if parsed.prompt_bytes is None else parsed.prompt_bytes
    return max(parsed.prompt_tokens or 0, -(-length // bytes_per_token))
