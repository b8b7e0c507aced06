"""From what the picker says and the client asked to where a request goes, with which headers."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from inferencecache.gateway import Failure, refusal_of_provider, target_url
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.transport.gateway_backends import Backends, UnresolvedBackendError
from inferencecache.transport.gateway_fault import AttemptFailedError
from inferencecache.transport.gateway_picker import PickFacts
from inferencecache.transport.gateway_upstream import Target

_UNRESOLVED: Final = refusal_of_provider(
    "backend_unresolved", "The provider's backend cannot be used."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the head of a request says.

    Attributes:
        path: One of the API's.
        query: As it came, without the question mark.
        facts: For the picker.
        headers: For the destination.
    """

    path: str
    query: str
    facts: PickFacts
    headers: Sequence[tuple[str, str]] = field(repr=False)


async def target_of(picked: pb.PickResponse, asked: Asked, backends: Backends) -> Target:
    """Return where the request is sent.

    Args:
        picked: Names a worker, or a provider.
        asked: What the client's head says.
        backends: Resolves providers.

    Raises:
        AttemptFailedError: The backend of a provider cannot be resolved.
    """
    if picked.WhichOneof("destination") == "local":
        url = target_url(f"http://{picked.local.endpoint}", "", asked.path, asked.query)
        return Target(kind="worker", url=url, headers=asked.headers)
    ref = picked.provider.backend_ref
    try:
        backend = await backends.resolve(ref.namespace, ref.name)
    except UnresolvedBackendError as error:
        raise AttemptFailedError(Failure.UNRESOLVED, _UNRESOLVED, error.reason) from None
    headers = list(asked.headers)
    if backend.auth is not None:
        name = backend.auth[0].lower()
        headers = [header for header in headers if header[0].lower() != name]
        headers.append(backend.auth)
    return Target(
        kind="provider",
        url=target_url(backend.base_url, picked.provider.path, asked.path, asked.query),
        headers=headers,
        tls=backend.tls,
        server_name=backend.server_name,
    )
