"""A certificate is taken while it is valid: not before, and not after."""

import datetime as dt
from pathlib import Path

import pytest
from certificates import Authority, Pair

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.transport.tls_files import TlsFiles, TlsLoadError, TlsMaterial, TlsPaths

NOON_NS = 1_893_499_200 * NS_PER_S  # 2030-01-01T12:00:00Z
NOON = dt.datetime(2030, 1, 1, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> Authority:
    """Return an authority."""
    return Authority()


def current(files: TlsFiles) -> TlsMaterial:
    """Look once, and return what is served with then."""
    files.look()
    return files.current


class Dated:
    """A server's files on the first of January 2030, at noon."""

    def __init__(self, directory: Path, authority: Authority) -> None:
        self.directory = directory
        self.authority = authority
        self.clock = ManualClock(NOON_NS)
        self.complaints: list[str] = []
        authority.server((NOON - DAY, NOON + DAY)).write(directory)
        ca_file = str(authority.write(directory / "ca.pem"))
        self.paths = TlsPaths(
            cert_file=str(directory / "server.pem"),
            key_file=str(directory / "server.key"),
            client_ca_file=ca_file,
        )

    def start(self) -> TlsFiles:
        """Read the files."""
        return TlsFiles(self.paths, self.clock, self.complaints.append)

    def put(self, not_before: dt.datetime, not_after: dt.datetime) -> Pair:
        """Replace the pair."""
        pair = self.authority.server((not_before, not_after))
        pair.write(self.directory)
        return pair


def test_an_expired_pair_is_not_taken(tmp_path: Path, authority: Authority) -> None:
    """It is refused once, with the date; a good one after it is taken."""
    dated = Dated(tmp_path, authority)
    files = dated.start()
    before = files.current
    dated.put(NOON - DAY, NOON - dt.timedelta(seconds=1))
    for _ in range(3):
        assert current(files) is before
        dated.clock.advance_ns(NS_PER_S)
    assert (files.reloads, files.failures) == (0, 1)
    assert dated.complaints == [
        f"{dated.paths.cert_file} has expired: it was valid until 2030-01-01T11:59:59Z"
    ]
    good = dated.put(NOON - DAY, NOON + DAY)
    assert current(files).certificate == good.certificate
    assert (files.reloads, files.failures) == (1, 1)


def test_a_pair_that_is_not_valid_yet_is_taken_when_it_is(
    tmp_path: Path, authority: Authority
) -> None:
    """Nobody has to touch the files again; until then it is refused once."""
    dated = Dated(tmp_path, authority)
    files = dated.start()
    before = files.current
    # Files have rested for long, as far as this clock knows.
    early = dated.put(NOON + dt.timedelta(seconds=5), NOON + DAY)
    for _ in range(5):
        assert current(files) is before
        dated.clock.advance_ns(NS_PER_S)
    assert (files.reloads, files.failures) == (0, 1)
    assert dated.complaints == [
        f"{dated.paths.cert_file} is not valid yet: it will be from 2030-01-01T12:00:05Z on"
    ]
    assert current(files).certificate == early.certificate
    assert (files.reloads, files.failures) == (1, 1)


@pytest.mark.parametrize(
    ("not_before", "not_after", "words"),
    [
        (NOON - DAY, NOON - dt.timedelta(seconds=1), "has expired"),
        (NOON + dt.timedelta(seconds=1), NOON + DAY, "is not valid yet"),
    ],
)
def test_nothing_starts_with_a_pair_that_is_not_valid(
    tmp_path: Path,
    authority: Authority,
    not_before: dt.datetime,
    not_after: dt.datetime,
    words: str,
) -> None:
    """Not for a second."""
    dated = Dated(tmp_path, authority)
    dated.put(not_before, not_after)
    with pytest.raises(TlsLoadError, match=words) as refused:
        dated.start()
    assert dated.paths.cert_file in refused.value.reason


def test_both_ends_of_its_time_belong_to_it(tmp_path: Path, authority: Authority) -> None:
    """Seconds are whole."""
    dated = Dated(tmp_path, authority)
    dated.put(NOON, NOON)
    assert dated.start().current.validity.not_after_s == NOON_NS // NS_PER_S
    dated.clock.advance_ns(NS_PER_S - 1)
    dated.start()
    dated.clock.advance_ns(1)
    with pytest.raises(TlsLoadError):
        dated.start()


def test_an_authority_is_taken_away_though_the_certificate_has_expired_meanwhile(
    tmp_path: Path, authority: Authority
) -> None:
    """Access must not outlive its removal because a renewal is late."""
    dated = Dated(tmp_path, authority)
    files = dated.start()
    dated.clock.advance_ns(2 * 86_400 * NS_PER_S)
    other = Authority("another")
    other.write(Path(dated.paths.client_ca_file))
    assert current(files).client_ca == other.pem
    assert (files.reloads, files.failures, files.removals) == (1, 0, 1)
