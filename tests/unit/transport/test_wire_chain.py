"""Looking for a chain or for entries takes a few steps, whatever stands before them."""

from collections.abc import Callable

import pytest
from work_counter import lines_run

from inferencecache.settings.lookup import LookupSettings
from inferencecache.transport.convert_report import state_update
from inferencecache.transport.read_lookup import read_long_request, read_names, read_route_request
from inferencecache.transport.wire_chain import find_field
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

LINES_MAX = 10_000
PIECE_LINES_MAX = 60_000
"""A message is read in pieces of a few thousand fields."""

TINY_FIELDS = [
    b"\x0a\x00" * 30_000,  # names without a character
    b"\x48\x05" * 30_000,  # token ids, each a field of its own, as clients may write them
    b"\x20\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" * 6_000,  # counts below zero
]
ENTRY_OF_TINY_FIELDS = b"\x32\xe0\xd4\x03" + b"\x48\x05" * 30_000
ONE_LONG_VARINT = b"\x20" + b"\xff" * 60_000


@pytest.mark.parametrize("data", [*TINY_FIELDS, ONE_LONG_VARINT])
@pytest.mark.parametrize("read", [read_route_request, read_names])
def test_a_lookup_of_many_fields_is_not_walked(
    read: Callable[[bytes], object], data: bytes
) -> None:
    """The library reads it instead, in a hundredth of the time."""
    assert lines_run(lambda: read(data)) < LINES_MAX


@pytest.mark.parametrize("data", [*TINY_FIELDS, ONE_LONG_VARINT, ENTRY_OF_TINY_FIELDS])
def test_a_report_of_many_fields_is_not_walked(data: bytes) -> None:
    """Nor is an entry of one."""
    assert lines_run(lambda: state_update(data)) < LINES_MAX


@pytest.mark.parametrize("field", TINY_FIELDS)
def test_a_long_lookup_of_many_fields_is_read_in_short_steps(field: bytes) -> None:
    """The first of its steps is as short as the others."""
    steps = read_long_request(field * 10, LookupSettings())

    assert lines_run(lambda: next(steps, None)) < PIECE_LINES_MAX


def test_unpacked_tokens_are_read_however_many_they_are() -> None:
    """What is not walked is not lost."""
    request = read_route_request(b"\x0a\x01m" + b"\x48\x05" * 30_000)

    assert request is not None
    assert (request.model_id, list(request.token_ids)) == ("m", [5] * 30_000)


@pytest.mark.parametrize("timestamp_us", [0, 127, 128, 2**63 - 1, -1, -(2**63)])
def test_numbers_of_any_width_are_passed_over(timestamp_us: int) -> None:
    """What is looked for begins right behind them."""
    before = pb.CacheStateUpdate(replica_id="r", timestamp_us=timestamp_us).SerializeToString()

    assert find_field(before + b"\x32\x02\x0a\x00", 0x32) == len(before)


def test_a_number_of_more_bytes_than_any_has_is_not_taken_for_one() -> None:
    """The message does not parse, though what follows looks sound."""
    entries = pb.CacheStateUpdate(
        prefixes=[pb.PrefixEntry(prefix_hash=b"%08d" % n, token_count=16) for n in range(40)]
    ).SerializeToString()

    for width in range(9, 14):
        data = b"\x28" + b"\xff" * width + b"\x01" + entries
        assert (state_update(data) is None) == (width > 9)
