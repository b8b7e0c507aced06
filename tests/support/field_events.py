"""Event payloads of shapes seen in public reports, with the keys that must come of them."""

import base64
import json
from pathlib import Path

from engine_events import Producer

from inferencecache.events.decode import decode_batch
from inferencecache.settings.producer import DecodeSettings

EVENTS = Path(__file__).parents[1] / "data" / "field" / "events"


def payload(name: str) -> bytes:
    """Return one payload."""
    return (EVENTS / f"{name}.msgpack").read_bytes()


def expected_keys(name: str, adapter_id: str = "") -> list[tuple[str, int]]:
    """Return the keys listed for a prompt."""
    listed = json.loads((EVENTS / "expected_keys.json").read_text(encoding="utf-8"))[name]
    found = [(adapter_id, int(value)) for value in listed["dec"]]
    wire = [base64.b64encode(key.to_bytes(8, "big")).decode() for _, key in found]
    assert wire == listed["b64be"]
    return found


def play(producer: Producer, *names: str) -> None:
    """Feed payloads to *producer*, checking after each that index and mapper agree."""
    for name in names:
        producer.index.apply(
            producer.mapper.apply(decode_batch(payload(name), DecodeSettings()), 0)
        )
        producer.check()
