"""Certificates made on the spot: an authority, servers on loopback, clients with names."""

import datetime as dt
import ipaddress
import os
import ssl
from pathlib import Path

import grpc
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519
from cryptography.hazmat.primitives.asymmetric.types import (
    CertificateIssuerPrivateKeyTypes,
    CertificatePublicKeyTypes,
)
from cryptography.x509.oid import NameOID

_NOW = dt.datetime.now(dt.UTC)
_FROM, _UNTIL = _NOW - dt.timedelta(days=1), _NOW + dt.timedelta(days=30)
Dates = tuple[dt.datetime, dt.datetime]
"""From when until when a certificate is valid."""

EXPIRED: Dates = (_NOW - dt.timedelta(days=30), _NOW - dt.timedelta(days=1))
SHORTLY: Dates = (_NOW - dt.timedelta(days=1), _NOW + dt.timedelta(days=2))
NOT_YET: Dates = (_NOW + dt.timedelta(days=1), _NOW + dt.timedelta(days=30))
LOOPBACK = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
)


class Pair:
    """A certificate and its key, as PEM."""

    def __init__(
        self, certificate: x509.Certificate, key: CertificateIssuerPrivateKeyTypes
    ) -> None:
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM)
        self.key = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        self.serial = certificate.serial_number
        self.not_after_s = int(certificate.not_valid_after_utc.timestamp())

    def write(self, directory: Path, name: str = "server") -> tuple[Path, Path]:
        """Write both files; return their paths."""
        cert_file, key_file = directory / f"{name}.pem", directory / f"{name}.key"
        replace_file(cert_file, self.certificate)
        replace_file(key_file, self.key)
        return cert_file, key_file


class Authority:
    """Signs certificates."""

    def __init__(self, name: str = "test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = (
            _builder(self._name, self._name, self._key.public_key())
            .add_extension(constraints, critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, dates: Dates = (_FROM, _UNTIL)) -> Pair:
        """Return a certificate for a server on loopback."""
        return self._pair("server", LOOPBACK, dates)

    def client(self, common_name: str = "", *, uri: str = "", dns: str = "") -> Pair:
        """Return a certificate with the given names."""
        names: list[x509.GeneralName] = []
        if uri:
            names.append(x509.UniformResourceIdentifier(uri))
        if dns:
            names.append(x509.DNSName(dns))
        return self._pair(common_name or "client", tuple(names))

    def write(self, path: Path) -> Path:
        """Write the authority's own certificate; return the path."""
        replace_file(path, self.pem)
        return path

    def context(self, client: Pair | None = None, directory: Path | None = None) -> ssl.SSLContext:
        """Return what an HTTP client of a server with a certificate from here uses."""
        context = ssl.create_default_context(cadata=self.pem.decode())
        if client is not None and directory is not None:
            cert_file, key_file = client.write(directory, f"client-{client.serial}")
            context.load_cert_chain(cert_file, key_file)
        return context

    def channel_credentials(self, client: Pair | None = None) -> grpc.ChannelCredentials:
        """Return what a gRPC client of a server with a certificate from here uses."""
        if client is None:
            return grpc.ssl_channel_credentials(self.pem)
        return grpc.ssl_channel_credentials(self.pem, client.key, client.certificate)

    def _pair(
        self,
        common_name: str,
        names: tuple[x509.GeneralName, ...],
        dates: Dates = (_FROM, _UNTIL),
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name), self._name, key.public_key(), dates).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Pair(builder.sign(self._key, hashes.SHA256()), key)


def replace_file(path: Path, content: bytes) -> None:
    """Put *content* at *path* as one step, as people who rotate files should."""
    fresh = path.with_name(path.name + ".new")
    fresh.write_bytes(content)
    os.replace(fresh, path)  # noqa: PTH105 - the one step


def signed_by_itself(
    key: CertificateIssuerPrivateKeyTypes,
    names: tuple[x509.GeneralName, ...] = LOOPBACK,
    *,
    may_sign: bool | None = None,
) -> Pair:
    """Return a certificate of *key* that vouches for itself.

    Args:
        key: Of any kind.
        names: Of whom it is.
        may_sign: What it says about that; None for nothing.
    """
    name = _name("server")
    builder = _builder(name, name, key.public_key()).add_extension(
        x509.SubjectAlternativeName(names), critical=False
    )
    if may_sign is not None:
        builder = builder.add_extension(_key_usage(digital_signature=may_sign), critical=True)
    hashes_itself = isinstance(key, (ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey))
    return Pair(builder.sign(key, None if hashes_itself else hashes.SHA256()), key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: CertificatePublicKeyTypes,
    dates: Dates = (_FROM, _UNTIL),
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(dates[0])
        .not_valid_after(dates[1])
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_usage(*, digital_signature: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
