"""TLS for the two kinds of listener; both take the newest files at each connection."""

import ssl
from collections.abc import Callable
from typing import cast

import grpc

from inferencecache.transport.tls_files import TlsFiles, TlsMaterial


def grpc_credentials(files: TlsFiles) -> grpc.ServerCredentials:
    """Return credentials for a gRPC port; with a client authority, clients need a certificate.

    The C core accepts TLS 1.2 and 1.3 only.
    """
    served = files.current

    def newest() -> grpc.ServerCertificateConfiguration | None:
        """Return what changed since the last connection, None for nothing."""
        nonlocal served
        material = files.current
        if material is served:
            return None
        served = material
        return _configuration(material)

    return grpc.dynamic_ssl_server_credentials(
        _configuration(served),
        cast("Callable[[], grpc.ServerCertificateConfiguration]", newest),
        require_client_authentication=files.asks_clients,
    )


def http_context(files: TlsFiles) -> ssl.SSLContext:
    """Return a context for an HTTP port; client certificates are checked where they are shown."""
    context = files.current.context

    def swap(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = files.current.context

    context.sni_callback = swap
    return context


def _configuration(material: TlsMaterial) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(material.key, material.certificate)], root_certificates=material.client_ca
    )
