"""Addresses to listen on."""

import pytest

from inferencecache.settings.address import BindAddress


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        (":9090", "", 9090),
        ("127.0.0.1:0", "127.0.0.1", 0),
        ("localhost:65535", "localhost", 65535),
        ("my-host.example_1:80", "my-host.example_1", 80),
        ("[::1]:0", "::1", 0),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
    ],
)
def test_reads_host_and_port(text: str, host: str, port: int) -> None:
    """Names, IPv4, bracketed IPv6 and a bare port are read, and written back the same."""
    address = BindAddress.parse(text)
    assert (address.host, address.port) == (host, port)
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "9090",
        "host",
        "host:",
        ":65536",
        ":-1",
        "::1:80",
        "[::1]",
        "a b:1",
        "http://a:1",
        ":\uff11",
    ],
)
def test_refuses_other_forms(text: str) -> None:
    """Missing or impossible ports, bare IPv6 and URLs are refused."""
    with pytest.raises(ValueError, match="address"):
        BindAddress.parse(text)
