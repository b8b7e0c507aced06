"""Who may come in where: checked, read and ready before anything listens.

The order of the checks is part of the contract: it decides which exit code a server with several
mistakes ends with.
"""

import os
from collections.abc import Callable, Generator, Mapping

import grpc

from inferencecache.clock import Clock
from inferencecache.resources import LoadState
from inferencecache.service.access import AccessTable
from inferencecache.service.access_resources import grants_of
from inferencecache.settings.auth import AuthSettings, check_control_auth
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.tls import check_tls_files
from inferencecache.transport.auth import Authenticator, KubernetesRule, WaysIn
from inferencecache.transport.auth_peers import FailedAttempts
from inferencecache.transport.auth_tokens import TokenFile, TokenFileError
from inferencecache.transport.grpc_access import CertificateGuard, OpenGuard, TenantGuard
from inferencecache.transport.metrics_control import AuthScope
from inferencecache.transport.start_error import StartError
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tls_files import TlsFiles, TlsLoadError, TlsPaths
from inferencecache.transport.tls_listeners import grpc_credentials
from inferencecache.transport.token_review import KubernetesReviewer, in_cluster


class Security:
    """Certificates, tokens and grants of one server.

    Args:
        settings: Everything the server was told.
        clock: The time of day, and for caches and windows.
        log: Told about files that go bad and tokens that are refused.
        environ: The process environment; None reads it.

    Raises:
        ConfigError: The settings make no sense together.
        StartError: A file, or the cluster, is not there or not usable.

    Attributes:
        grpc_tls: Files of the gRPC listener, None for plaintext.
        control_tls: Files of the control listener, None for plain HTTP.
        tokens: Bearer tokens, or None.
        access: Which client may use which tenant.
    """

    def __init__(
        self,
        settings: ServerSettings,
        clock: Clock,
        log: EventLog,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        auth, control, tls = settings.auth, settings.control, settings.tls
        self._settings, self._clock, self._log = settings, clock, log
        self.access = AccessTable()
        check_control_auth(auth, control)
        self._reviewer = _reviewer(auth, clock, os.environ if environ is None else environ)
        check_tls_files("tls", tls.cert_file, tls.key_file, tls.client_ca_file)
        check_tls_files(
            "control-tls", control.tls_cert_file, control.tls_key_file, control.tls_client_ca_file
        )
        self.grpc_tls = self._tls_files(
            "grpc",
            TlsPaths(
                cert_file=tls.cert_file,
                key_file=tls.key_file,
                client_ca_file=tls.client_ca_file,
            ),
        )
        self.control_tls = self._tls_files(
            "control",
            TlsPaths(
                cert_file=control.tls_cert_file,
                key_file=control.tls_key_file,
                client_ca_file=control.tls_client_ca_file,
            ),
        )
        self.tokens = self._token_file()
        self._failures = FailedAttempts(
            failures_max=auth.failures_max,
            window_ns=auth.failure_window_ns,
            peers_max=auth.peers_max,
            clock=clock,
        )

    @property
    def tls_files(self) -> dict[str, TlsFiles]:
        """Files of the listeners that speak TLS, by the listener's name."""
        files = {"grpc": self.grpc_tls, "control": self.control_tls}
        return {listener: each for listener, each in files.items() if each is not None}

    def credentials(self) -> grpc.ServerCredentials | None:
        """Return what the gRPC listener serves with, None for plaintext."""
        return grpc_credentials(self.grpc_tls) if self.grpc_tls is not None else None

    def guard(self, count: Callable[[str], None]) -> TenantGuard:
        """Return who decides about gRPC requests.

        Args:
            count: Told the method of each refused request.
        """
        if self.grpc_tls is None or not self.grpc_tls.asks_clients:
            return OpenGuard()
        return CertificateGuard(self.access, count)

    def apply_slices(self, load: LoadState) -> Generator[None, None, None]:
        """Put the TenantAccess objects of *load* in force."""
        grants = list(grants_of(load))
        yield
        self.access.replace(grants)

    def authenticator(self, scope: AuthScope) -> Authenticator | None:
        """Return who decides about *scope*, None where everybody may come in."""
        auth = self._settings.auth
        if auth.insecure_disable_auth:
            return None
        ways = WaysIn(names=auth.names(), tokens=self.tokens, kubernetes=self._rule(scope))
        return Authenticator(ways, self._failures, self._clock, self._log)

    def log_state(self) -> None:
        """Say in the log who may use the control listener, and whether nobody may use gRPC."""
        auth = self._settings.auth
        if self.grpc_tls is not None and self.grpc_tls.asks_clients and self.access.is_empty:
            self._log.warning("tenant_access_missing", reason="no TenantAccess grants anything")
        if auth.insecure_disable_auth:
            self._log.warning("controller_auth_disabled", reason="--insecure-disable-auth is set")
            return
        self._log.info(
            "controller_auth_enabled",
            expected_sa=auth.allowed_controller_sa,
            controller_audience=auth.controller_audience,
            policy_audience=auth.policy_audience,
            token_file=auth.token_file,
            client_names=auth.client_names,
        )

    async def close(self) -> None:
        """Close connections to the cluster."""
        if self._reviewer is not None:
            await self._reviewer.close()

    def _rule(self, scope: AuthScope) -> KubernetesRule | None:
        auth = self._settings.auth
        if self._reviewer is None:
            return None
        is_policy = scope is AuthScope.POLICY
        return KubernetesRule(
            reviewer=self._reviewer,
            username=auth.allowed_controller_sa,
            audience=auth.policy_audience if is_policy else auth.controller_audience,
            cache_ttl_ns=auth.cache_ttl_ns,
            cache_entries_max=auth.cache_entries_max,
        )

    def _tls_files(self, listener: str, paths: TlsPaths) -> TlsFiles | None:
        if not paths.cert_file:
            return None
        try:
            return TlsFiles(paths, self._clock, self._complaint(f"{listener}_tls_reload"))
        except TlsLoadError as error:
            raise StartError(event=f"{listener}_tls_load", reason=error.reason) from error

    def _token_file(self) -> TokenFile | None:
        path = self._settings.auth.token_file
        if not path:
            return None
        try:
            return TokenFile(path, self._clock, self._complaint("control_token_reload"))
        except TokenFileError as error:
            raise StartError(event="control_token_load", reason=error.reason) from error

    def _complaint(self, event: str) -> Callable[[str], None]:
        return lambda reason: self._log.error(event, reason=reason)


def _reviewer(
    auth: AuthSettings, clock: Clock, environ: Mapping[str, str]
) -> KubernetesReviewer | None:
    if not auth.allowed_controller_sa:
        return None
    where = in_cluster(environ, auth.service_account_dir)
    return KubernetesReviewer(where, auth.review_timeout_ns, clock)
