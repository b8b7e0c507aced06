"""Multipart messages of a publisher and of its replay socket."""

import pytest

from inferencecache.errors import MalformedEventError
from inferencecache.events import Frame, live_frame, replay_frame, replay_request


@pytest.mark.parametrize("lead", [[], [b""], [b"", b"topic"], [b"", b"a", b"b"]])
def test_replay_frames_are_read_from_the_end(lead: list[bytes]) -> None:
    """Whatever stands before the number does not matter."""
    assert replay_frame([*lead, (7).to_bytes(8, "big"), b"x"]) == Frame(7, b"x")
    assert replay_frame([*lead, b"\xff" * 8, b""]) is None
    assert replay_frame([*lead, b"\xff" * 8, b"x"]) is None
    assert replay_frame([*lead, (7).to_bytes(8, "big"), b""]) is None


def test_frames_of_other_shapes_are_refused() -> None:
    """Counts and widths that no engine sends are malformed."""
    assert live_frame([b"t", (3).to_bytes(8, "big"), b"p"]) == Frame(3, b"p")
    for parts in ([], [b"a"], [b"a", b"b"], [b"a"] * 5, [b"t", b"123", b"p"]):
        with pytest.raises(MalformedEventError):
            live_frame(parts)
    for parts in ([], [b"a"], [b"a"] * 6, [b"", b"1234567", b"p"]):
        with pytest.raises(MalformedEventError):
            replay_frame(parts)
    assert replay_request(5) == [b"", b"\0\0\0\0\0\0\0\x05"]
