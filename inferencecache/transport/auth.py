"""Who may use an endpoint of the control listener.

Theory of operation: a certificate with an accepted name opens the door; else a bearer token does,
if it stands in the token file, or if Kubernetes said within the last half minute, or says now, that
it belongs to the one allowed account and is meant for this endpoint. Everything else is refused,
and a peer that is refused too often is not asked about any more for a while: what can be told here
costs nothing and is still told, Kubernetes is left alone.

Rules of this file: refusals say nothing about why; tokens are kept and compared as SHA-256 only,
and never logged; one attempt counts once.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.transport.auth_peers import FailedAttempts
from inferencecache.transport.auth_tokens import TokenFile
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.token_review import Review, ReviewUnavailableError

_REASON_CHARACTERS_MAX: Final = 200


class AuthResult(StrEnum):
    """How an attempt ended; a metric label."""

    OK = "ok"
    UNAUTH = "unauth"
    FORBIDDEN = "forbidden"
    ERROR = "error"
    THROTTLED = "throttled"


class Refusal(NamedTuple):
    """How a refusal is answered.

    Attributes:
        status: HTTP status.
        text: The body.
    """

    status: int
    text: str


REFUSALS: Final[Mapping[AuthResult, Refusal]] = {
    AuthResult.UNAUTH: Refusal(401, "unauthorized\n\n"),
    AuthResult.FORBIDDEN: Refusal(403, "forbidden\n\n"),
    AuthResult.ERROR: Refusal(503, "token review unavailable\n\n"),
    AuthResult.THROTTLED: Refusal(429, "too many failed attempts\n\n"),
}
"""All but OK."""


class TokenReviewer(Protocol):
    """Knows whose a token is."""

    async def review(self, token: str, audience: str) -> Review | None:
        """Return what is known of *token*, None for no word; may raise ReviewUnavailableError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What a request shows of its sender.

    Attributes:
        authorization: Its Authorization header, or empty.
        names: The names in its client certificate.
        peer: What its failures are counted under.
    """

    authorization: str = field(default="", repr=False)
    names: frozenset[str] = frozenset()
    peer: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesRule:
    """Which tokens of a cluster are accepted.

    Attributes:
        reviewer: Asks the cluster.
        username: The one account.
        audience: For whom tokens must be meant; empty for nobody in particular.
        cache_ttl_ns: How long an accepted token is not asked about again, in nanoseconds.
        cache_entries_max: Accepted tokens remembered, >= 1.
    """

    reviewer: TokenReviewer
    username: str
    audience: str
    cache_ttl_ns: int
    cache_entries_max: int

    def __post_init__(self) -> None:
        """Refuse a rule that would let everybody in.

        Raises:
            ValueError: It names no account.
        """
        if not self.username:
            raise ValueError("a rule without an account accepts nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaysIn:
    """How one may be let in; at least one is set.

    Attributes:
        names: Accepted names of client certificates.
        tokens: Accepted bearer tokens, or None.
        kubernetes: Accepted tokens of a cluster, or None.
    """

    names: frozenset[str] = frozenset()
    tokens: TokenFile | None = None
    kubernetes: KubernetesRule | None = None


class Authenticator:
    """Decides for one endpoint.

    Args:
        ways: How one may be let in.
        failures: Shared by all endpoints.
        clock: Measures the age of what Kubernetes has said.
        log: Told why Kubernetes refuses a token.
    """

    __slots__ = ("_accepted", "_clock", "_failures", "_log", "_ways")

    def __init__(self, ways: WaysIn, failures: FailedAttempts, clock: Clock, log: EventLog) -> None:
        self._ways = ways
        self._failures = failures
        self._clock = clock
        self._log = log
        self._accepted: dict[bytes, int] = {}

    @property
    def cached(self) -> int:
        """Tokens that need not be asked about at the moment."""
        return len(self._accepted)

    async def check(self, attempt: Attempt) -> AuthResult:
        """Return whether the sender may come in."""
        if attempt.names & self._ways.names:
            return AuthResult.OK
        token = bearer_token(attempt.authorization)
        if not token:
            return AuthResult.FORBIDDEN if attempt.names else AuthResult.UNAUTH
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        if self._is_known(digest):
            return AuthResult.OK
        if self._failures.wait_ns(attempt.peer):
            return AuthResult.THROTTLED
        # Counted before its outcome is known: attempts made at the same time are attempts, too.
        self._failures.add(attempt.peer)
        result = AuthResult.ERROR
        try:
            result = await self._ask(token, digest)
        finally:
            if result not in {AuthResult.UNAUTH, AuthResult.FORBIDDEN}:
                self._failures.take_back(attempt.peer)
        return result

    def retry_after_s(self, attempt: Attempt) -> int:
        """Return how many seconds a throttled sender should wait, >= 1."""
        return max(-(-self._failures.wait_ns(attempt.peer) // NS_PER_S), 1)

    def _is_known(self, digest: bytes) -> bool:
        """Return whether the token can be accepted without asking anybody."""
        tokens = self._ways.tokens
        if tokens is not None and tokens.knows(digest):
            return True
        return self._clock.monotonic_ns() < self._accepted.get(digest, 0)

    async def _ask(self, token: str, digest: bytes) -> AuthResult:
        rule = self._ways.kubernetes
        if rule is None:
            return AuthResult.UNAUTH
        try:
            review = await rule.reviewer.review(token, rule.audience)
        except ReviewUnavailableError as error:
            self._log.warning("auth_token_review_failed", reason=error.reason)
            return AuthResult.ERROR
        if review is None:
            return AuthResult.ERROR
        result = self._judge(review, rule, token)
        if result is AuthResult.OK:
            self._remember(digest, rule)
        return result

    def _judge(self, review: Review, rule: KubernetesRule, token: str) -> AuthResult:
        if not review.authenticated:
            if review.error:
                reason = review.error.replace(token, "[token]")[:_REASON_CHARACTERS_MAX]
                self._log.warning("auth_token_review_unauthenticated", reason=reason)
            return AuthResult.UNAUTH
        # An API that does not know audiences leaves them out and has checked nothing.
        if rule.audience and rule.audience not in review.audiences:
            self._log.warning("auth_token_review_unauthenticated", reason="wrong audience")
            return AuthResult.UNAUTH
        if not hmac.compare_digest(review.user.username.encode(), rule.username.encode()):
            return AuthResult.FORBIDDEN
        return AuthResult.OK

    def _remember(self, digest: bytes, rule: KubernetesRule) -> None:
        now_ns = self._clock.monotonic_ns()
        accepted = self._accepted
        if digest not in accepted and len(accepted) >= rule.cache_entries_max:
            for known in [known for known, until_ns in accepted.items() if until_ns <= now_ns]:
                del accepted[known]
            if len(accepted) >= rule.cache_entries_max:
                del accepted[min(accepted, key=accepted.__getitem__)]
        accepted[digest] = now_ns + rule.cache_ttl_ns


def bearer_token(authorization: str) -> str:
    """Return the token of an Authorization header, empty if it carries none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
