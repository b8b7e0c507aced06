"""From what callers report about a decision to what response plugins are told.

Rules of this file: the header's hook and the first of the body's come with the first token; the
last of the body's comes once, whatever ended the request, and nothing comes behind it; where nobody
reported a first token, the last news is also the first.
"""

from types import MappingProxyType
from typing import Final

import msgspec

from inferencecache.picker.decisions import (
    AbortReport,
    Ending,
    FinalTokenReport,
    FirstTokenReport,
)
from inferencecache.picker.pipeline.endpoint import EndpointView
from inferencecache.picker.pipeline.guard import PluginFailure, guarded
from inferencecache.picker.pipeline.hooks import ResponseBodyProcessor, ResponseHeaderProcessor
from inferencecache.picker.pipeline.observer import FailureKind, Hook, PipelineObserver
from inferencecache.picker.pipeline.plugin import Named
from inferencecache.picker.pipeline.request import Request
from inferencecache.picker.pipeline.response import Response, TerminationCause, Usage

_CAUSES: Final = {
    Ending.FINISHED: TerminationCause.FINISHED,
    Ending.ABORTED: TerminationCause.ABORTED,
    Ending.EXPIRED: TerminationCause.EXPIRED,
    Ending.EVICTED: TerminationCause.EVICTED,
    Ending.UNSETTLED: TerminationCause.WITHDRAWN,
    Ending.STOPPED: TerminationCause.STOPPED,
}


class ResponsePlugins(msgspec.Struct, frozen=True, kw_only=True):
    """Those that are told how one request goes on.

    Attributes:
        headers: Told that an answer has begun.
        bodies: Told of the first token and of the end.
    """

    headers: tuple[Named[ResponseHeaderProcessor], ...]
    bodies: tuple[Named[ResponseBodyProcessor], ...]


class ResponseFollower:
    """Tells the response plugins of one request how it goes on.

    Args:
        plugins: The plugins.
        request: Whose.
        endpoint: Where it was sent.
        observer: Told about failures.
    """

    __slots__ = ("_endpoint", "_has_ended", "_has_started", "_observer", "_plugins", "_request")

    def __init__(
        self,
        plugins: ResponsePlugins,
        request: Request,
        endpoint: EndpointView,
        observer: PipelineObserver,
    ) -> None:
        self._plugins = plugins
        self._request = request
        self._endpoint = endpoint
        self._observer = observer
        self._has_started = False
        self._has_ended = False

    def first_token(self, report: FirstTokenReport) -> None:
        """Pass a first token on."""
        if self._has_started or self._has_ended:
            return
        self._has_started = True
        self._header(
            Response(
                request_id=self._request.request_id,
                headers=MappingProxyType({":status": str(report.upstream_status)}),
                status=report.upstream_status,
                observed_ttft_ms=report.observed_ttft_ms,
            )
        )
        self._body(
            Response(
                request_id=self._request.request_id,
                status=report.upstream_status,
                observed_ttft_ms=report.observed_ttft_ms,
                start_of_stream=True,
            )
        )

    def ended(self, ending: Ending, report: FinalTokenReport | AbortReport | None) -> None:
        """Pass the end on, once."""
        if self._has_ended:
            return
        self._has_ended = True
        is_final = isinstance(report, FinalTokenReport)
        self._body(
            Response(
                request_id=self._request.request_id,
                start_of_stream=is_final and not self._has_started,
                end_of_stream=True,
                termination=_CAUSES[ending],
                usage=_usage(report) if isinstance(report, FinalTokenReport) else None,
                served_model=report.model if isinstance(report, FinalTokenReport) else "",
                abort_reason=report.reason if isinstance(report, AbortReport) else "",
            )
        )

    def _header(self, response: Response) -> None:
        for step in self._plugins.headers:
            answer = guarded(step.plugin.response_header, self._request, response, self._endpoint)
            if isinstance(answer, PluginFailure):
                self._failed(step.name, Hook.RESPONSE_HEADER, answer.error)

    def _body(self, response: Response) -> None:
        for step in self._plugins.bodies:
            answer = guarded(step.plugin.response_body, self._request, response, self._endpoint)
            if isinstance(answer, PluginFailure):
                self._failed(step.name, Hook.RESPONSE_BODY, answer.error)

    def _failed(self, plugin: str, hook: Hook, error: BaseException) -> None:
        self._observer.plugin_failed(plugin, hook, FailureKind.RAISED, error)


def _usage(report: FinalTokenReport) -> Usage:
    return Usage(
        prompt_tokens=report.prompt_tokens,
        completion_tokens=report.completion_tokens,
        cached_tokens=report.cached_tokens,
        itl_bucket_counts=report.itl_bucket_counts,
        itl_bucket_layout=report.itl_bucket_layout,
    )
