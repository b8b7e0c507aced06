"""Any bytes give a batch or MalformedEventError, and a batch never upsets the mapper.

Ten thousand payloads on every run; two hundred thousand with ``--long``.
"""

import random
import tracemalloc

import pytest
from engine_payloads import layouts
from field_events import EVENTS

from inferencecache.errors import MalformedEventError
from inferencecache.events import EventMapper, decode_batch, live_frame, replay_frame
from inferencecache.settings.producer import DecodeSettings, MapperSettings

SEED = 20_262
GOLDEN = [*layouts().values(), *[path.read_bytes() for path in sorted(EVENTS.glob("*.msgpack"))]]
MARKS = [0x80, 0x8F, 0x90, 0x9F, 0xA5, 0xC0, 0xC1, 0xC3, 0xC4, 0xC6, 0xCA, 0xCB, 0xCF, 0xD3]
MARKS += [0xD9, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF, 0xFF]


def mutated(rng: random.Random) -> bytes:
    """Return a golden payload with a few bytes changed, cut, repeated or spliced."""
    data = bytearray(rng.choice(GOLDEN))
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        position = rng.randrange(len(data) + 1)
        kind = rng.choice([0, 0, 0, 1, 1, 2, 3, 4, 5])
        if kind == 0 and position < len(data):
            data[position] = rng.randrange(256)
        elif kind == 1 and position < len(data):
            data[position] = rng.choice(MARKS)
        elif kind == 2:
            del data[position : position + rng.randint(1, 9)]
        elif kind == 3:
            data[position:position] = rng.randbytes(rng.randint(1, 9))
        elif kind == 4:
            data[position:position] = data[position : position + rng.randint(1, 64)]
        else:
            other = rng.choice(GOLDEN)
            data[position:] = other[min(position, len(other)) :]
    return bytes(data)


def payload(rng: random.Random) -> bytes:
    """Return a mutated payload, or now and then pure noise behind a plausible beginning."""
    if rng.random() < 0.85:
        return mutated(rng)
    lead = rng.choice([b"", b"\x93", b"\x93\xcb" + bytes(8) + b"\x91", b"\xdd\xff\xff\xff"])
    return lead + rng.randbytes(rng.randrange(64))


def fuzz(count: int, seed: int) -> int:
    """Decode and map *count* payloads; return how many had at least one event."""
    rng = random.Random(seed)
    mapper = EventMapper(MapperSettings(blocks_max=500, lora_name_from_event=True, ranks_max=4))
    useful = 0
    for step in range(count):
        data = payload(rng)
        try:
            read = decode_batch(data, DecodeSettings())
        except MalformedEventError:
            continue
        useful += bool(read.events)
        mapper.apply(read, step)
        if step % 500 == 0:
            mapper.check_invariants()
    mapper.check_invariants()
    assert mapper.blocks_total <= 500
    return useful


@pytest.mark.timeout(300)
def test_no_exception_leaves_the_decoder() -> None:
    """Ten thousand mutated and random payloads are decoded or refused."""
    assert fuzz(10_000, SEED) > 1_000


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_no_exception_leaves_the_decoder_for_long() -> None:
    """The same for two hundred thousand."""
    assert fuzz(200_000, SEED + 1) > 20_000


def test_memory_stays_bounded_by_the_payload() -> None:
    """A length in a header reserves nothing that the payload does not hold."""
    tracemalloc.start()
    try:
        for header in (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"):
            for lead in (b"", b"\x93\xcb" + bytes(8), b"\x93\xcb" + bytes(8) + b"\x91"):
                with pytest.raises(MalformedEventError):
                    decode_batch(lead + header + bytes(100), DecodeSettings())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 1_000_000


def test_cut_anywhere_is_refused_or_read() -> None:
    """Every prefix of every golden payload is refused; the whole is read."""
    for golden in GOLDEN:
        decode_batch(golden, DecodeSettings())
        for end in range(len(golden)):
            with pytest.raises(MalformedEventError):
                decode_batch(golden[:end], DecodeSettings())


def test_frames_of_any_shape() -> None:
    """Any list of parts is a frame, an end marker or MalformedEventError."""
    rng = random.Random(SEED)
    for _ in range(2_000):
        parts = [rng.randbytes(rng.choice([0, 1, 7, 8, 9])) for _ in range(rng.randrange(8))]
        for read in (live_frame, replay_frame):
            try:
                read(parts)
            except MalformedEventError:
                continue
