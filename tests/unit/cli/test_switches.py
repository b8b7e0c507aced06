"""Switches may be given without a value."""

import pytest

from inferencecache.cli.switches import with_values


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], []),
        (["serve", "--insecure-disable-auth"], ["serve", "--insecure-disable-auth=true"]),
        (["--insecure-disable-auth", "false"], ["--insecure-disable-auth", "false"]),
        (["--insecure-disable-auth", "true"], ["--insecure-disable-auth", "true"]),
        (["--insecure-disable-auth=false"], ["--insecure-disable-auth=false"]),
        (
            ["--insecure-disable-auth", "--ttl", "5m"],
            ["--insecure-disable-auth=true", "--ttl", "5m"],
        ),
        (["--ttl", "true"], ["--ttl", "true"]),
    ],
)
def test_a_switch_alone_means_true(given: list[str], meant: list[str]) -> None:
    """Only settings that are true or false are switches."""
    assert with_values(given) == meant
