"""Ask Kubernetes whose token something is: the TokenReview API, as a pod reaches it."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from inferencecache.clock import NS_PER_S, Clock
from inferencecache.errors import InferenceCacheError
from inferencecache.transport.file_watch import FileWatch
from inferencecache.transport.read_file import read_plain_file
from inferencecache.transport.start_error import StartError
from inferencecache.transport.tls_trust import trusting

API_VERSION: Final = "authentication.k8s.io/v1"
_PATH: Final = f"/apis/{API_VERSION}/tokenreviews"
_CONNECTIONS_MAX: Final = 8
_ANSWER_BYTES_MAX: Final = 1_048_576
_FILE_BYTES_MAX: Final = 1_048_576
_CREATED: Final = frozenset({200, 201})


class ReviewUnavailableError(InferenceCacheError):
    """Kubernetes gave no usable word on a token.

    Args:
        reason: Why, without the token.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ReviewedUser(msgspec.Struct):
    """Who the token belongs to."""

    username: str = ""


class Review(msgspec.Struct):
    """What Kubernetes says of a token.

    Attributes:
        authenticated: Whether it is somebody's.
        user: Whose.
        audiences: For whom the API has found it to be meant.
        error: Why it is nobody's, if the API says so.
    """

    authenticated: bool = False
    user: ReviewedUser = msgspec.field(default_factory=ReviewedUser)
    audiences: tuple[str, ...] = ()
    error: str = ""


class _Answer(msgspec.Struct):
    status: Review


@dataclass(frozen=True, slots=True, kw_only=True)
class InCluster:
    """How a pod reaches the API of its cluster.

    Attributes:
        url: Scheme, host and port.
        token_file: The pod's own token; Kubernetes renews it.
        ca_file: The API's authority.
    """

    url: str
    token_file: Path
    ca_file: Path


def in_cluster(environ: Mapping[str, str], directory: str) -> InCluster:
    """Return how to reach the API from here.

    Args:
        environ: The process environment.
        directory: Where the service account is mounted.

    Raises:
        StartError: This is no pod, or it has no service account.
    """
    host = environ.get("KUBERNETES_SERVICE_HOST", "")
    port = environ.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise StartError(
            event="in_cluster_config",
            reason="KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: "
            "--allowed-controller-sa works only inside a cluster",
        )
    where = InCluster(
        url=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        token_file=Path(directory) / "token",
        ca_file=Path(directory) / "ca.crt",
    )
    if not where.token_file.is_file():
        raise StartError(event="in_cluster_config", reason=f"there is no {where.token_file}")
    return where


class KubernetesReviewer:
    """Reviews tokens over HTTPS.

    Args:
        where: How to reach the API.
        timeout_ns: Longest wait for an answer, in nanoseconds.
        clock: The time of day.

    Raises:
        StartError: The API's authority cannot be read.
    """

    def __init__(self, where: InCluster, timeout_ns: int, clock: Clock) -> None:
        self._where = where
        self._timeout = aiohttp.ClientTimeout(total=timeout_ns / NS_PER_S)
        self._watch = FileWatch((str(where.ca_file),), clock)
        self._session: aiohttp.ClientSession | None = None
        self._watch.take_change()
        try:
            self._context = _trusting(where.ca_file)
        except (OSError, ValueError) as error:
            raise StartError(
                event="kube_client", reason=f"{where.ca_file} cannot be used: {error}"
            ) from error

    async def review(self, token: str, audience: str) -> Review:
        """Ask whose *token* is.

        Args:
            token: As it came in.
            audience: For whom it must be meant; empty asks for nobody in particular.

        Raises:
            ReviewUnavailableError: The API gave no answer that can be read.
        """
        spec: dict[str, Any] = {"token": token}
        if audience:
            spec["audiences"] = [audience]
        body = {"apiVersion": API_VERSION, "kind": "TokenReview", "spec": spec}
        try:
            own_token = read_plain_file(self._where.token_file, _FILE_BYTES_MAX).decode().strip()
            return await self._ask(json.dumps(body).encode(), own_token)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ReviewUnavailableError(type(error).__name__) from error
        except (ValueError, RecursionError) as error:
            raise ReviewUnavailableError("the answer cannot be read") from error

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, body: bytes, own_token: str) -> Review:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=_CONNECTIONS_MAX)
            self._session = aiohttp.ClientSession(connector=connector, timeout=self._timeout)
        headers = {"Authorization": f"Bearer {own_token}", "Content-Type": "application/json"}
        async with self._session.post(
            self._where.url + _PATH,
            data=body,
            headers=headers,
            ssl=self._trusted(),
            allow_redirects=False,
        ) as answer:
            if answer.status not in _CREATED:
                raise ReviewUnavailableError(f"the API answered {answer.status}")
            content = await answer.content.read(_ANSWER_BYTES_MAX)
            while not answer.content.at_eof() and len(content) < _ANSWER_BYTES_MAX:
                content += await answer.content.read(_ANSWER_BYTES_MAX - len(content))
        return msgspec.json.decode(content, type=_Answer).status

    def _trusted(self) -> ssl.SSLContext:
        """Return what the API is checked by; an authority that cannot be read changes nothing."""
        if self._watch.take_change():
            try:
                self._context = _trusting(self._where.ca_file)
            except (OSError, ValueError):
                return self._context
        return self._context


def _trusting(ca_file: Path) -> ssl.SSLContext:
    return trusting(read_plain_file(ca_file, _FILE_BYTES_MAX))
