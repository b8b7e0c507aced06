"""Endpoints in a file of their own, beside the worker sets that name it.

Whoever finds engines writes such a file anew whenever they change. It lies in the directory of the
resource files and is watched, bounded and held like them, but it is a plain list: what its entries
are made of is the same as in a worker set.
"""

from ipaddress import IPv6Address
from typing import Annotated, Final, Literal

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.kind import ResourceKind, ResourceScope, Rule
from inferencecache.resources.model import LoadState, ObjectKey
from inferencecache.resources.models import ResourceModel
from inferencecache.resources.served_models import repeated

ENDPOINTS_MAX: Final = 10_000
SUFFIXES: Final = (".endpoints.yaml", ".endpoints.yml", ".endpoints.json")
FILE_PATTERN: Final = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?\.endpoints\.(yaml|yml|json)\Z"

_PORT: Final = (
    r"([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
)
_ADDRESS_PATTERN: Final = (
    rf"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*\]):{_PORT}\Z"
)
METRICS_URL_PATTERN: Final = r'^https?://[!"$->A-~]+\Z'
"""Of URLs without user, query and fragment, since those may hold secrets and URLs are shown."""

_KIND: Final = "EndpointsFile"


class EndpointSpec(ResourceModel, frozen=True, kw_only=True):
    """One engine worker."""

    name: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=253,
            description="The replica under which the index knows it.",
            extra_json_schema={"example": "llama-0"},
        ),
    ]
    address: Annotated[
        str,
        Meta(
            max_length=280,
            pattern=_ADDRESS_PATTERN,
            description="Host and port, an IPv6 address in brackets.",
            extra_json_schema={"example": "10.0.0.7:8000"},
        ),
    ]
    labels: (
        Annotated[dict[str, str], Meta(description="For filters and scorers of plugins.")] | None
    ) = None
    weight: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=1_000_000,
                description="Its share of the load beside the others.",
                extra_json_schema={"default": 1},
            ),
        ]
        | None
    ) = None
    role: (
        Annotated[
            Literal["both", "prefill", "decode"],
            Meta(
                description="Which part of a request it does.",
                extra_json_schema={"default": "both"},
            ),
        ]
        | None
    ) = None
    metrics_url: (
        Annotated[
            str,
            Meta(
                max_length=2_048,
                pattern=METRICS_URL_PATTERN,
                description="Its page of metrics, without user and query; the set's if left out.",
                extra_json_schema={"example": "http://10.0.0.7:8000/metrics"},
            ),
        ]
        | None
    ) = None


Endpoints = Annotated[
    list[EndpointSpec],
    Meta(max_length=ENDPOINTS_MAX, description="Its workers, each name and address once."),
]


class EndpointsFileSpec(ResourceModel, frozen=True, kw_only=True):
    """The list that such a file consists of."""

    endpoints: Endpoints


class EndpointsFileStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody."""


def is_endpoints_file(name: str) -> bool:
    """Tell whether a file of this name holds a list of endpoints."""
    return name.endswith(SUFFIXES)


def endpoints_document(name: str, value: object) -> dict[str, object]:
    """Return the list in the file *name* in the form of an object."""
    return {
        "apiVersion": ENDPOINTS_FILE.api_version,
        "kind": _KIND,
        "metadata": {"name": name},
        "spec": {"endpoints": value},
    }


def endpoints_flaw(endpoints: list[EndpointSpec]) -> Flaw | None:
    """Return what is wrong if an address is none, or if a name or an address stands there twice."""
    for place, endpoint in enumerate(endpoints):
        if endpoint.address.startswith("[") and not _is_ipv6(endpoint.address):
            return Flaw(
                field=f"spec.endpoints[{place}].address",
                value=shown(endpoint.address),
                allowed="an IPv6 address in brackets and a port, for example '[fd00::8]:8000'",
            )
    for member in ("name", "address"):
        found = repeated(getattr(endpoint, member) for endpoint in endpoints)
        if found is not None:
            return Flaw(
                field=f"spec.endpoints[{found[0]}].{member}",
                value=shown(found[1]),
                allowed=f"each {member} once",
            )
    return None


def _is_ipv6(address: str) -> bool:
    """Tell whether what stands in brackets is an IPv6 address."""
    try:
        IPv6Address(address[1 : address.rindex("]")])
    except ValueError:
        return False
    return True


def endpoints_in(load: LoadState, file: str) -> list[EndpointSpec] | None:
    """Return what the file of this name says; None if there is none, or never was one.

    Args:
        load: The objects in force.
        file: The name of the file.
    """
    found = load.objects.get(ObjectKey(_KIND, "", file))
    return found.spec.endpoints if found and isinstance(found.spec, EndpointsFileSpec) else None


def _check(spec: EndpointsFileSpec) -> Flaw | None:
    return endpoints_flaw(spec.endpoints)


ENDPOINTS_FILE: Final = ResourceKind(
    kind=_KIND,
    plural="endpointsfiles",
    short_names=(),
    description="The endpoints of the worker sets that name the file.",
    spec=EndpointsFileSpec,
    status=EndpointsFileStatus,
    scope=ResourceScope.CLUSTER,
    rules=(Rule(path="spec.endpoints", cel="", message="", check=_check),),
    is_document=False,
)
