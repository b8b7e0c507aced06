"""Say where a request would go, and why, without sending it there."""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from inferencecache.errors import InvalidRequestError
from inferencecache.picker.bodies import Rope
from inferencecache.picker.choice import Choice, Outcome, PoolName, QosClass, Question, Refusal
from inferencecache.picker.request import BadBodyError
from inferencecache.transport.http_control_json import plain
from inferencecache.transport.picker_convert import check_identifier, shortened
from inferencecache.transport.picker_reader import BodyReader

REHEARSAL_PARAMETERS: Final = ("tenant", "pool", "qos", "request_id")
"""What the page can be asked for beside the body."""

_POOL: Final = re.compile(r"(?:([^/]+)/)?([^/]+)")


class RehearsalError(ValueError):
    """A parameter means nothing; the text says which, and what would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """Answers bodies as a Pick would.

    Attributes:
        reader: Parses them.
        rehearse: Chooses, and leaves nothing behind.
        may_lack_model: Whether a model could stand in where a body names none.
        identifier_bytes_max: Longest tenant, and namespace or name of a pool, in bytes of UTF-8.
    """

    reader: BodyReader
    rehearse: Callable[[Question], Awaitable[Choice | Refusal]]
    may_lack_model: Callable[[], bool]
    identifier_bytes_max: int

    async def answer(self, body: bytes, query: Mapping[str, str]) -> dict[str, Any]:
        """Return what a Pick for *body* would say by now, as plain values.

        Args:
            body: As a gateway would push it.
            query: Tenant, pool, class and the caller's name for the request, as texts.

        Raises:
            RehearsalError: One of them means nothing.
        """
        tenant = query.get("tenant", "")
        pool, qos = _pool(query.get("pool", "")), _qos(query.get("qos", QosClass.INTERACTIVE))
        self._check_names(tenant, pool)
        content = Rope([body])
        try:
            read = await self.reader.read(content, may_lack_model=self.may_lack_model())
        except BadBodyError as error:
            return {"outcome": Outcome.BAD_REQUEST.value, "reason": error.reason}
        found = await self.rehearse(
            Question(
                request=read.request,
                content=content,
                top_level=read.top_level,
                tenant=tenant,
                qos=qos,
                pool=pool,
                client_request_id=shortened(query.get("request_id", "")),
            )
        )
        return {**_shown(found), "requestedModel": read.request.model}

    def _check_names(self, tenant: str, pool: PoolName | None) -> None:
        """Refuse what a Pick could not say, either.

        Raises:
            RehearsalError: A name is too long.
        """
        names = {"tenant": tenant}
        if pool is not None:
            names |= {"pool": pool.name, "pool's namespace": pool.namespace}
        try:
            for field, name in names.items():
                check_identifier(field, name, self.identifier_bytes_max)
        except InvalidRequestError as error:
            raise RehearsalError(str(error)) from None


def _shown(found: Choice | Refusal) -> dict[str, Any]:
    explanation = plain(found.explanation)
    if isinstance(found, Refusal):
        return {
            "outcome": found.outcome.value,
            "reason": found.reason,
            "explanation": explanation,
        }
    outcome = Outcome.DEGRADED if found.is_degraded else Outcome.OK
    return {
        "outcome": outcome.value,
        "reason": found.reason,
        "destination": found.name,
        "targetModel": found.target_model,
        "explanation": explanation,
    }


def _pool(text: str) -> PoolName | None:
    if not text:
        return None
    named = _POOL.fullmatch(text)
    if named is None:
        raise RehearsalError("pool is not allowed; expected NAME or NAMESPACE/NAME")
    return PoolName(namespace=named[1] or "", name=named[2], resource_version="")


def _qos(text: str) -> QosClass:
    try:
        return QosClass(text.upper())
    except ValueError:
        classes = ", ".join(QosClass)
        raise RehearsalError(f"qos is not allowed; expected one of {classes}") from None
