"""However a report is read, the index holds and answers what the library reads in its bytes.

All reports drawn have the shape that is cut out column by column, or nearly: then some field is
repeated, misplaced, unknown, empty, wider than it needs or of another kind, or the bytes are cut
off or overwritten. What counts is what ``CacheStateUpdate.FromString`` makes of them, told entry by
entry.
"""

from collections.abc import Iterator

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from index_twin import TableRules, built
from plain_update import PlainPrefix, PlainUpdate

from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.transport.convert_report import state_update, update_of_entries
from inferencecache.transport.read_report import long_update_steps
from inferencecache.types import PartitionKey
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

NOW_NS = 10**18
FULL_TURN = 2**64


def varint(number: int, superfluous: int = 0) -> bytes:
    """Return a number as on the wire, in more bytes than it needs where that is asked for."""
    number %= FULL_TURN
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    written.append(number)
    for _ in range(superfluous):
        written[-1] |= 0x80
        written.append(0)
    return bytes(written)


def field(tag: int, content: bytes, superfluous: int = 0) -> bytes:
    """Return a field that says how long it is."""
    return bytes((tag,)) + varint(len(content), superfluous) + content


SIZES = [0, 1, 127, 128, 16_383, 16_384, 2**21, 2**28 - 1, 2**28, 2**31 - 1, 2**32 + 5, -1]
USUAL_TAILS = [b"", b"\x28\x02", field(0x32, b"a"), b"\x28\x03" + field(0x32, "é".encode() * 3)]
ODD_TAILS = [
    b"\x28\x00",
    b"\x28" + varint(-1),
    field(0x32, b""),
    field(0x32, b"\xff"),  # not UTF-8
    field(0x32, b"a") + b"\x28\x02",  # out of order
    b"\x28\x02\x28\x03",  # the last one counts
    b"\x10\x07",  # another count
    b"\x10\x00",
    b"\x12\x01a",  # the count's number with the kind of a text
    b"\xfa\x07\x01x",  # fields nobody knows
    b"\x38\x81\x00",
    b"\x3d1234",
    field(0x0A, b"zz"),  # another hash
    field(0x1A, b"zz"),  # a block of a chain
    field(0x22, b"\x05"),  # its count
    b"\x20\x05",
]
HEADS = [
    field(0x0A, b"r"),
    field(0x12, b"m"),
    field(0x1A, b"t"),
    field(0x22, b"s"),
    field(0x42, b"d"),
    b"\x28\x07",
    b"\x28" + varint(-3),
    field(0x3A, b"\x25\x00\x00\x00\x3f"),  # statistics
]
GROUP = b"\x4b\x4c"
ODD_FIELDS = [
    field(0x0A, b"r2"),
    field(0x0A, b""),
    field(0x0A, b"q" * 200),
    field(0x1A, b"\xc3"),
    field(0x32, b""),
    field(0x32, field(0x1A, b"ab") + field(0x22, b"\x10")),
    field(0x32, field(0x0A, b"ab"), 1),
    b"\x2a\x01a",
    b"\x30\x05",
    b"\xfa\x07\x01x",
    GROUP,
]
ODD_ENTRIES = [
    b"",
    b"\x10\x10",
    field(0x0A, b""),
    field(0x0A, b"12345678", 1) + b"\x10\x10",
    field(0x0A, b"12345678") + b"\x10\x90\x00",
    field(0x1A, b"12345678") + field(0x22, b"\x10"),
]
TWISTS = ["none", "tail", "tail", "tails", "count", "countless", "entry", "field", "cut", "byte"]
"""What is wrong with a report: one thing, for with two the first hides the second."""


@st.composite
def counts_of(draw: st.DrawFn, number: int) -> list[int]:
    """Draw the counts of entries: a chain's, equal ones, or any."""
    kind = draw(st.sampled_from(["chain", "chain", "equal", "any"]))
    first = draw(st.sampled_from([1, 5, 16, 300]) | st.sampled_from(SIZES))
    if kind == "any":
        some = draw(st.lists(st.sampled_from(SIZES) | st.integers(1, 300), min_size=2, max_size=9))
        return [some[place % len(some)] for place in range(number)]
    step = draw(st.sampled_from([1, 16, 50_000])) if kind == "chain" else 0
    return [first + step * place for place in range(number)]


@st.composite
def entries(draw: st.DrawFn, twist: str) -> list[bytes]:
    """Draw entries alike in all but hash and count, and what the twist makes of them."""
    width = draw(st.sampled_from([8, 8, 8, 1, 16, 32, 127, 128]))
    number = draw(st.integers(16, 40))
    counts, seed = draw(counts_of(number)), draw(st.integers(0, 255))
    tails = [draw(st.sampled_from(ODD_TAILS if twist == "tail" else USUAL_TAILS))]
    if twist == "tails":
        tails = draw(st.sampled_from([[b"\x28\x02", b"\x28\x03"], [b"\x32\x01a", b"\x32\x01b"]]))
    superfluous = draw(st.lists(st.integers(0, 1), min_size=1, max_size=3))
    alike = []
    for place, count in enumerate(counts):
        more = superfluous[place % len(superfluous)] if twist == "count" else 0
        written = b"" if twist == "countless" else b"\x10" + varint(count, more)
        block = bytes((seed + place * (at + 1)) % 256 for at in range(width))
        alike.append(field(0x0A, block) + written + tails[place % len(tails)])
    if twist == "entry":
        alike.insert(draw(st.integers(0, number)), draw(st.sampled_from(ODD_ENTRIES)))
    return alike


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, bool]:
    """Draw a report as bytes, and whether they were damaged afterwards."""
    twist = draw(st.sampled_from(TWISTS))
    groups = draw(st.lists(entries(twist), min_size=1, max_size=2))
    fields = [field(0x32, entry) for group in groups for entry in group]
    if twist == "field":
        fields.insert(draw(st.integers(0, len(fields))), draw(st.sampled_from(ODD_FIELDS)))
    before = draw(st.integers(0, len(HEADS)))
    data = b"".join((*HEADS[:before], *fields, *HEADS[before:]))
    at = draw(st.integers(0, len(data) - 1))
    if twist == "byte":
        data = data[:at] + bytes((draw(st.integers(0, 255)),)) + data[at + 1 :]
    return (data[:at] if twist == "cut" else data), twist in {"byte", "cut"}


def plain(data: bytes) -> PlainUpdate | None:
    """Return a report as the library reads it."""
    try:
        message = pb.CacheStateUpdate.FromString(data)
    except DecodeError:
        return None
    return PlainUpdate(
        tenant_id=message.tenant_id,
        model_id=message.model_id,
        replica_id=message.replica_id,
        hash_scheme=message.hash_scheme,
        timestamp_ns=message.timestamp_us * 1_000,
        adapter_id=message.adapter_id,
        prefixes=tuple(
            PlainPrefix(
                entry.prefix_hash,
                entry.token_count,
                tuple(entry.block_hashes),
                tuple(entry.block_token_counts),
                entry.tier,
                entry.adapter_id,
            )
            for entry in message.prefixes
        ),
    )


def told(update: StateUpdate, expected: PlainUpdate) -> Iterator[object]:
    """Yield what an index answers to which only *update* was reported."""
    update.stats = None
    names = update.tenant_id, update.model_id, update.replica_id, update.hash_scheme
    yield names, update.timestamp_ns, update.adapter_id, update.entries, update.chain_blocks
    index = PrefixIndex(IndexSettings(), TableRules())
    index.report(update, NOW_NS)
    index.check_invariants()
    yield index.entries, index.counters.drops, index.counters.timestamps_clamped
    hashes = [entry.prefix_hash for entry in expected.prefixes if entry.prefix_hash]
    hashes += [block for entry in expected.prefixes for block in entry.block_hashes if block]
    scope = expected.tenant_id, expected.model_id, expected.hash_scheme
    for adapter_id in {expected.adapter_id, *(entry.adapter_id for entry in expected.prefixes)}:
        key = PartitionKey(*scope, adapter_id)
        found = index.match_chain(key, hashes, [16] * len(hashes), -FULL_TURN) if hashes else []
        yield adapter_id, sorted(found)
        for block in hashes:
            yield block, sorted(index.match_exact(key, block, -FULL_TURN))


def read_long(data: bytes) -> StateUpdate | None:
    """Return a report read in pieces."""
    steps = long_update_steps(data, GrpcSettings())
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            update: StateUpdate | None = finished.value
            return update


def check_report(data: bytes, *, may_be_refused: bool = False) -> None:
    """Assert that a report is read alike, whichever way.

    Args:
        data: The report.
        may_be_refused: Whether it may have what only the library takes, if it is long.
    """
    expected = plain(data)
    if expected is None:
        assert state_update(data) is None
        assert read_long(data) is None
        return
    answers = list(told(built(expected), expected))
    update, in_pieces = state_update(data), read_long(data)
    assert update is not None
    assert list(told(update, expected)) == answers
    if in_pieces is None:
        assert may_be_refused
    else:
        assert list(told(in_pieces, expected)) == answers


@settings(max_examples=600)
@given(messages())
def test_the_index_holds_what_the_library_reads(drawn: tuple[bytes, bool]) -> None:
    """Cut out of the bytes, read by the library, or in pieces: one content, one set of answers."""
    data, is_damaged = drawn
    check_report(data, may_be_refused=is_damaged or GROUP in data)


@pytest.mark.parametrize("counts", [[5] * 30, [300] * 30, list(range(130, 160))])
@pytest.mark.parametrize("tail", [*USUAL_TAILS, *ODD_TAILS])
def test_every_tail_says_what_it_says_to_the_library(tail: bytes, counts: list[int]) -> None:
    """Counts before it are overridden where it has one."""
    alike = [field(0x0A, b"%08d" % n) + b"\x10" + varint(n) + tail for n in counts]
    check_report(b"".join((*HEADS, *(field(0x32, entry) for entry in alike))))


@pytest.mark.parametrize("tail", [b"", b"\x28\x02", b"\x28\x02\x32\x01a", b"\xfa\x07\x01x"])
def test_what_is_drawn_here_is_cut_out_of_the_bytes(tail: bytes) -> None:
    """The usual shapes of this file do not all take the general way."""
    entry = b"".join(
        field(0x32, field(0x0A, b"%08d" % n) + b"\x10" + varint(16 * n) + tail)
        for n in range(1, 61)
    )

    assert update_of_entries(b"".join((*HEADS, entry))) is not None
