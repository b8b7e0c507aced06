"""GatewayBackend: where a provider is reached, with which key, over which TLS.

The server reads it and does nothing with it; ``inferencecache gateway`` resolves it. Files are
named relative to a directory of the gateway's, so that whoever writes objects cannot have it send
any file of its machine to an address of his choice.
"""

import re
from typing import Annotated, Final

from msgspec import Meta

from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.kind import AGE, Column, ResourceKind, Rule
from inferencecache.resources.models import Conditions, ObservedGeneration, ResourceModel
from inferencecache.resources.provider_spec import BACKEND_GROUP, BACKEND_KIND

_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_NAME: Final = rf"{_LABEL}(\.{_LABEL})*"
_PORT: Final = (
    r":([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
)
_URL_PATTERN: Final = (
    rf"^https?://({_NAME}|\[[0-9A-Fa-f:.]+\])({_PORT})?"
    r"(/([A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*)*\Z"
)
_FILE_PATTERN: Final = r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*\Z"
_HEADER_PATTERN: Final = r"^[A-Za-z0-9-]+\Z"
_DOTS: Final = re.compile(r"/(\.|%2[Ee]){1,2}(/|\Z)")
_DOTS_CEL: Final = r"!self.matches(r'/(\.|%2[Ee]){1,2}(/|$)')"
_TLS_CEL: Final = "!has(self.tls) || self.baseURL.startsWith('https:')"
_PAIR_CEL: Final = "has(self.certFile) == has(self.keyFile)"
_AUTHORIZATION: Final = "Authorization"
_TAKEN: Final = frozenset(
    {"connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding"}
)
"""Headers that say how a message is sent; a key in one of them would break it."""

SecretFile = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1_024,
        pattern=_FILE_PATTERN,
        description="A file, below the gateway's --secrets directory.",
        extra_json_schema={"example": "databricks.key"},
    ),
]


class BackendAuthSpec(ResourceModel, frozen=True, kw_only=True):
    """What the provider is shown."""

    secret_file: SecretFile
    header: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=128,
                pattern=_HEADER_PATTERN,
                description="The header that carries the key.",
                extra_json_schema={"default": _AUTHORIZATION, "example": "x-api-key"},
            ),
        ]
        | None
    ) = None
    scheme: (
        Annotated[
            str,
            Meta(
                max_length=32,
                pattern=r"^[A-Za-z0-9-]*\Z",
                description="What stands in front of the key; Bearer in Authorization and nothing "
                "in another header, if left out.",
                extra_json_schema={"example": "Bearer"},
            ),
        ]
        | None
    ) = None


class BackendTlsSpec(ResourceModel, frozen=True, kw_only=True):
    """How the provider is checked, and what it is shown; it is always checked."""

    ca_file: SecretFile | None = None
    cert_file: SecretFile | None = None
    key_file: SecretFile | None = None
    server_name: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=253,
                pattern=rf"^{_NAME}\Z",
                description="Name in the provider's certificate; the host of the URL if left out.",
                extra_json_schema={"example": "api.example.com"},
            ),
        ]
        | None
    ) = None


class GatewayBackendSpec(ResourceModel, frozen=True, kw_only=True):
    """An address with what is needed to be let in."""

    base_url: Annotated[
        str,
        Meta(
            max_length=2_048,
            pattern=_URL_PATTERN,
            description="Scheme, host and, if need be, port; the path in it stands in front of the "
            "path of each request.",
            extra_json_schema={"example": "https://adb-1.azuredatabricks.net"},
        ),
    ]
    auth: BackendAuthSpec | None = None
    tls: BackendTlsSpec | None = None


class GatewayBackendStatus(ResourceModel, frozen=True, kw_only=True):
    """Written by nobody yet."""

    observed_generation: ObservedGeneration | None = None
    conditions: Conditions | None = None


def auth_header_of(auth: BackendAuthSpec) -> tuple[str, str]:
    """Return the name of the header that carries the key, and what stands in front of it.

    >>> auth_header_of(BackendAuthSpec(secret_file="k"))
    ('Authorization', 'Bearer ')
    >>> auth_header_of(BackendAuthSpec(secret_file="k", header="x-api-key"))
    ('x-api-key', '')
    """
    name = auth.header or _AUTHORIZATION
    scheme = auth.scheme
    if scheme is None:
        scheme = "Bearer" if name.lower() == _AUTHORIZATION.lower() else ""
    return name, f"{scheme} " if scheme else ""


def _check_url(spec: GatewayBackendSpec) -> Flaw | None:
    if _DOTS.search(spec.base_url) is None:
        return None
    return Flaw(
        field="spec.baseURL",
        value=shown(spec.base_url),
        allowed="a URL without segments of one or two dots",
    )


def _check_tls(spec: GatewayBackendSpec) -> Flaw | None:
    if spec.tls is None or spec.base_url.startswith("https:"):
        return None
    return Flaw(field="spec.tls", value="an object", allowed="nothing where baseURL is not https")


def _check_pair(spec: GatewayBackendSpec) -> Flaw | None:
    tls = spec.tls
    if tls is None or (tls.cert_file is None) == (tls.key_file is None):
        return None
    absent = "certFile" if tls.cert_file is None else "keyFile"
    return Flaw(
        field=f"spec.tls.{absent}",
        value="nothing",
        allowed="a file: certificate and key are a pair",
    )


def _check_header(spec: GatewayBackendSpec) -> Flaw | None:
    header = None if spec.auth is None else spec.auth.header
    if header is None or header.lower() not in _TAKEN:
        return None
    return Flaw(
        field="spec.auth.header",
        value=shown(header),
        allowed="a header that does not say how a message is sent",
    )


GATEWAY_BACKEND: Final = ResourceKind(
    kind=BACKEND_KIND,
    plural="gatewaybackends",
    short_names=("gwb",),
    description="Where inferencecache gateway reaches a provider, with which key, over which TLS.",
    spec=GatewayBackendSpec,
    status=GatewayBackendStatus,
    columns=(
        Column(name="URL", type="string", path=".spec.baseURL", description="Where it is."),
        AGE,
    ),
    rules=(
        Rule(
            path="spec.baseURL",
            cel=_DOTS_CEL,
            message="must have no segments of one or two dots",
            check=_check_url,
        ),
        Rule(
            path="spec",
            cel=_TLS_CEL,
            message="tls needs a baseURL with https",
            check=_check_tls,
        ),
        Rule(
            path="spec.tls",
            cel=_PAIR_CEL,
            message="certFile and keyFile are a pair",
            check=_check_pair,
        ),
        Rule(
            path="spec.auth.header",
            cel="!(self.lowerAscii() in ["
            + ", ".join(f"'{name}'" for name in sorted(_TAKEN))
            + "])",
            message="must be a header that does not say how a message is sent",
            check=_check_header,
        ),
    ),
    group=BACKEND_GROUP,
)
