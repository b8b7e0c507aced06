"""The client for gateways that use threads."""

from collections.abc import Container
from types import TracebackType
from typing import Self

import grpc

from inferencecache.client.lookup_core import LookupCore
from inferencecache.client.notices import Metrics, NoMetrics, OnWarning, log_warning
from inferencecache.client.reporting import Reporter
from inferencecache.client.result import LookupResult
from inferencecache.settings.client import ClientSettings
from inferencecache.transport.client_channel import open_channel
from inferencecache.transport.client_report import ReportLine
from inferencecache.transport.client_values import LookupQuery, ReplicaHint
from inferencecache.transport.lookup_client import LookupCaller
from inferencecache.transport.system_clock import SystemClock


class CacheClient:
    """Ask a cache server where prompts are warm; keep one for the life of the process.

    Safe to use from many threads. Construction does not connect; lookups before the server is
    there end without a hint, and the connection comes back by itself.

    Args:
        target: gRPC target, for example ``localhost:9090``.
        settings: Deadline, keepalive and limits.
        credentials: TLS or composite credentials; None means plaintext.
        metrics: Where lookups are counted.
        on_warning: Receives each wrong tenant, model or hash scheme once.
    """

    def __init__(
        self,
        target: str,
        *,
        settings: ClientSettings | None = None,
        credentials: grpc.ChannelCredentials | None = None,
        metrics: Metrics | None = None,
        on_warning: OnWarning = log_warning,
    ) -> None:
        self._target = target
        self._settings = settings or ClientSettings()
        self._channel = open_channel(target, self._settings, credentials)
        self._caller = LookupCaller(self._channel)
        self._core = LookupCore(self._settings, metrics or NoMetrics(), on_warning, SystemClock())

    def lookup(
        self,
        query: LookupQuery,
        *,
        deadline_ms: float | None = None,
        eligible: Container[str] | None = None,
    ) -> LookupResult:
        """Return a hint or the reason for none; never raise for what the server does.

        Args:
            query: What to ask.
            deadline_ms: Longest wait in milliseconds; None takes the setting.
            eligible: Replicas the gateway can use now; None accepts every one.
        """
        started_ns = self._core.begin()
        outcome = self._caller.ask(query, self._core.timeout_s(deadline_ms))
        return self._core.finish(started_ns, query, outcome, eligible)

    def choose(
        self,
        query: LookupQuery,
        *,
        deadline_ms: float | None = None,
        eligible: Container[str] | None = None,
    ) -> ReplicaHint | None:
        """Return the best replica, or None to route by the gateway's own policy.

        Args:
            query: What to ask.
            deadline_ms: Longest wait in milliseconds; None takes the setting.
            eligible: Replicas the gateway can use now; None accepts every one.
        """
        return self.lookup(query, deadline_ms=deadline_ms, eligible=eligible).best()

    def reporter(self) -> Reporter:
        """Return a new ordered line of reports over this client's connection."""
        return Reporter(ReportLine(self._channel, self._target, self._settings))

    def close(self) -> None:
        """Close the connection; calls under way and later ones end without a hint."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
