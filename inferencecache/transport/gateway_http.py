"""Take requests of clients, say no where the head alone is enough, and answer for what failed."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPMethod, HTTPStatus
from typing import Final

from aiohttp import web

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.gateway import (
    API_PATHS,
    BAD_HEAD,
    LONG_HEAD,
    NO_ROUTE,
    NOT_ALLOWED,
    PICKER_DOWN,
    TOO_LARGE,
    UNKNOWN_KEY,
    UNPACKED_ONLY,
    Refusal,
    error_form_of,
    error_page,
    printable,
    qos_name,
    refusal_of_doubled,
    request_headers,
)
from inferencecache.transport.gateway_exchange import Exchange, ExchangeParts
from inferencecache.transport.gateway_fault import RefusedError
from inferencecache.transport.gateway_keys import KeyFile
from inferencecache.transport.gateway_picker import PickFacts
from inferencecache.transport.gateway_target import Asked
from inferencecache.transport.random_ids import random_id

_OTHER: Final = "other"
_ID_CHARS_MAX: Final = 128
_BUG: Final = Refusal(
    status=HTTPStatus.INTERNAL_SERVER_ERROR,
    code="internal_error",
    message="The gateway failed; this is a bug.",
)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_KEYS: Final = ("authorization", "x-api-key")
_EACH_PASSED_BYTES: Final = 32
"""What a header counts beside its name and value, by the rules of HTTP/2."""


class GatewayPages:
    """Answers requests of clients.

    Args:
        parts: What all requests share.
        keys: API keys; None takes the tenant from a header.
    """

    def __init__(self, parts: ExchangeParts, keys: KeyFile | None) -> None:
        self._parts = parts
        self._keys = keys
        requests = parts.settings.requests
        names = requests.passed_headers.split(",")
        self._passed = frozenset(filter(None, (name.strip().lower() for name in names)))
        self._own = (requests.tenant_header, requests.qos_header, requests.request_id_header)
        whose = (requests.tenant_header,) if keys is None else _KEYS
        self._once = (*whose, requests.qos_header)
        self._is_draining = False
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def drain(self, timeout_s: float) -> None:
        """Take no more requests, and wait for running ones no longer than *timeout_s*."""
        self._is_draining = True
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer *request*."""
        path = request.path if request.path in API_PATHS else _OTHER
        started_ns = self._parts.clock.monotonic_ns()
        status = 0
        request_id = self._request_id(request)
        self._parts.metrics.began()
        self._running += 1
        self._idle.clear()
        try:
            answer = await self._answer(request, request_id)
            status = answer.status
            return answer
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()
            self._parts.metrics.ended(path, status)
            self._parts.log.debug(
                "gateway_request",
                request_id=request_id,
                path=path,
                status=status,
                duration_ms=(self._parts.clock.monotonic_ns() - started_ns) // NS_PER_MS,
            )

    async def _answer(self, request: web.BaseRequest, request_id: str) -> web.StreamResponse:
        try:
            asked = self._asked(request, request_id)
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(_CONTINUE)
            return await Exchange(self._parts, request, asked).run()
        except RefusedError as error:
            return self._refused(request, error.refusal, request_id)
        except ConnectionError:  # nobody is there any more
            raise
        except Exception:  # the HTTP boundary: logged, answered, never fatal
            self._parts.log.exception("gateway_request_failed", request_id=request_id)
            return self._refused(request, _BUG, request_id)

    def _asked(self, request: web.BaseRequest, request_id: str) -> Asked:
        """Return what the head says.

        Raises:
            RefusedError: It is enough to say no.
        """
        if request.path not in API_PATHS:
            raise RefusedError(NO_ROUTE)
        if request.method != HTTPMethod.POST:
            raise RefusedError(NOT_ALLOWED)
        if self._is_draining:
            raise RefusedError(PICKER_DOWN)
        self._check_body(request)
        tenant = self._tenant(request)
        query = request.rel_url.raw_query_string
        if not (query.isascii() and query.isprintable()):
            raise RefusedError(BAD_HEAD)
        return Asked(
            path=request.path,
            query=query,
            facts=PickFacts(
                request_id=request_id,
                tenant=tenant,
                qos=qos_name(request.headers.get(self._own[1], "")),
                metadata=self._metadata(request),
            ),
            headers=(
                *request_headers(request.headers.items(), self._own),
                (self._own[2], request_id),
            ),
        )

    def _check_body(self, request: web.BaseRequest) -> None:
        """Refuse a body by what the head says of it.

        Raises:
            RefusedError: It is too large, or packed.
        """
        encodings = request.headers.getall("Content-Encoding", ())
        if any(encoding.strip().lower() != "identity" for encoding in encodings):
            raise RefusedError(UNPACKED_ONLY)
        if (request.content_length or 0) > self._parts.settings.requests.body_bytes_max:
            raise RefusedError(TOO_LARGE)

    def _tenant(self, request: web.BaseRequest) -> str:
        """Return whose request it is; the picker would only say no to a longer name.

        Raises:
            RefusedError: Nobody knows, or it is no name.
        """
        for name in self._once:
            if len(request.headers.getall(name, ())) > 1:
                raise RefusedError(refusal_of_doubled(name))
        if self._keys is None:
            tenant = request.headers.get(self._own[0], "").strip()
        else:
            known = self._keys.tenant_of(request.headers)
            if known is None:
                raise RefusedError(UNKNOWN_KEY)
            tenant = known
        bytes_max = self._parts.settings.requests.tenant_bytes_max
        if not _is_text(tenant) or len(tenant.encode()) > bytes_max:
            raise RefusedError(BAD_HEAD)
        return tenant

    def _metadata(self, request: web.BaseRequest) -> tuple[tuple[str, str], ...]:
        """Return those headers of the request that plugins see.

        Raises:
            RefusedError: They are more than a call may carry.
        """
        passed = tuple(self._passed_of(request))
        size = sum(len(name) + len(value) + _EACH_PASSED_BYTES for name, value in passed)
        if size > self._parts.settings.requests.passed_bytes_max:
            raise RefusedError(LONG_HEAD)
        return passed

    def _passed_of(self, request: web.BaseRequest) -> Iterator[tuple[str, str]]:
        for name, value in request.headers.items():
            lower = name.lower()
            if lower in self._passed and value.isascii() and value.isprintable():
                yield lower, value

    def _request_id(self, request: web.BaseRequest) -> str:
        given = printable(request.headers.get(self._own[2], ""), _ID_CHARS_MAX)
        return given or f"{random_id():016x}"

    def _refused(
        self, request: web.BaseRequest, refusal: Refusal, request_id: str
    ) -> web.StreamResponse:
        headers = {self._own[2]: request_id, "X-Content-Type-Options": "nosniff"}
        if refusal.may_retry_later:
            seconds = self._parts.settings.upstream.retry_after_ns // NS_PER_S
            headers["Retry-After"] = str(seconds)
        if refusal.status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = HTTPMethod.POST
        answer = web.Response(
            status=refusal.status,
            body=error_page(refusal, error_form_of(request.path)),
            content_type="application/json",
            headers=headers,
        )
        if self._is_draining:
            answer.force_close()
        return answer


def _is_text(text: str) -> bool:
    """Return whether a message may carry *text*; bytes that were no UTF-8 may not be."""
    return all(not "\ud800" <= character <= "\udfff" for character in text)
