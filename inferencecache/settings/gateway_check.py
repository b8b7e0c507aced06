"""What settings of a gateway must be like beyond their own bounds."""

import re
from typing import Final

from inferencecache.errors import ConfigError
from inferencecache.settings.gateway import GatewayRequestSettings, GatewaySettings
from inferencecache.settings.target import check_target
from inferencecache.settings.tls import check_tls_files

_HEADER: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII | re.IGNORECASE)
_URL: Final = re.compile(r"https?://[^\s/?#@\\]+(?:/[!$-.0-;=@-\[\]_a-z~/]*)?", re.IGNORECASE)
_POOL: Final = re.compile(r"(?:[a-z0-9.-]+/)?[a-z0-9.-]+", re.ASCII)
_NOT_PASSED: Final = ("grpc-", "-bin")
"""What gRPC keeps to itself, and what it takes for bytes."""


def check_gateway(settings: GatewaySettings) -> None:
    """Refuse what cannot work.

    Raises:
        ConfigError: A setting, or what several make together.
    """
    check_target("--picker", settings.picker.target)
    check_tls_files("tls", settings.tls.cert_file, settings.tls.key_file, "")
    if settings.picker.pool and not _POOL.fullmatch(settings.picker.pool):
        raise ConfigError(
            field="--pool", value=settings.picker.pool, allowed="NAME or NAMESPACE/NAME"
        )
    fallback = settings.upstream.fallback_url
    if fallback and not _URL.fullmatch(fallback):
        raise ConfigError(
            field="--fallback",
            value="what was given",
            allowed="a URL such as http://10.0.0.5:8000, without user, query and fragment",
        )
    _check_headers(settings.requests)


def _check_headers(requests: GatewayRequestSettings) -> None:
    named = {
        "--tenant-header": requests.tenant_header,
        "--qos-header": requests.qos_header,
        "--request-id-header": requests.request_id_header,
    }
    for field, name in named.items():
        if not _HEADER.fullmatch(name):
            raise ConfigError(field=field, value=name, allowed="the name of a header")
    if len({name.lower() for name in named.values()}) < len(named):
        raise ConfigError(
            field="--qos-header", value=requests.qos_header, allowed="three different headers"
        )
    for name in filter(None, map(str.strip, requests.passed_headers.lower().split(","))):
        start, end = _NOT_PASSED
        if not _HEADER.fullmatch(name) or name.startswith(start) or name.endswith(end):
            raise ConfigError(
                field="--pass-headers",
                value=name,
                allowed="names of headers that do not begin with grpc- or end with -bin",
            )
