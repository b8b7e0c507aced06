"""Where the package comes from, as far as the installer has noted it."""

from importlib.metadata import Distribution, PackageNotFoundError

import pytest

from inferencecache.app.build import UNKNOWN, installed_commit


@pytest.mark.parametrize(
    ("noted", "commit"),
    [
        (None, UNKNOWN),
        ("", UNKNOWN),
        ("{}", UNKNOWN),
        ("[]", UNKNOWN),
        ("no json", UNKNOWN),
        ('{"vcs_info":{"vcs":"git","commit_id":"abc123"}}', "abc123"),
    ],
)
def test_the_commit_is_what_the_installer_noted(
    monkeypatch: pytest.MonkeyPatch, noted: str | None, commit: str
) -> None:
    """Anything else is unknown, and never an error."""

    class Installed:
        def read_text(self, _name: str) -> str | None:
            return noted

    monkeypatch.setattr(Distribution, "from_name", lambda _name: Installed())
    assert installed_commit() == commit


def test_a_package_that_is_not_installed_comes_from_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Running from a checkout is fine."""

    def absent(_name: str) -> Distribution:
        raise PackageNotFoundError

    monkeypatch.setattr(Distribution, "from_name", absent)
    assert installed_commit() == UNKNOWN
