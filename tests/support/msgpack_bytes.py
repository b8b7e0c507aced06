"""MessagePack written byte by byte, with a choice of header widths, independent of any library."""

import struct

NIL = b"\xc0"
TRUE = b"\xc3"


def real(value: float) -> bytes:
    """Return a 64-bit float."""
    return b"\xcb" + struct.pack(">d", value)


def integer(value: int) -> bytes:
    """Return an integer in its shortest usual form."""
    if 0 <= value < 128:
        return bytes([value])
    if -32 <= value < 0:
        return struct.pack(">b", value)
    if value < 0:
        return b"\xd3" + struct.pack(">q", value)
    if value < 1 << 16:
        return b"\xcd" + struct.pack(">H", value)
    if value < 1 << 32:
        return b"\xce" + struct.pack(">I", value)
    return b"\xcf" + struct.pack(">Q", value)


def text(value: str) -> bytes:
    """Return a string."""
    data = value.encode()
    if len(data) < 32:
        return bytes([0xA0 | len(data)]) + data
    if len(data) < 256:
        return b"\xd9" + bytes([len(data)]) + data
    return b"\xda" + struct.pack(">H", len(data)) + data


def binary(data: bytes) -> bytes:
    """Return a byte string."""
    if len(data) < 256:
        return b"\xc4" + bytes([len(data)]) + data
    return b"\xc5" + struct.pack(">H", len(data)) + data


def array(items: list[bytes], width: int = 0) -> bytes:
    """Return an array; *width* 16 or 32 forces that header."""
    return _header(len(items), width, (0x90, 0xDC, 0xDD)) + b"".join(items)


def mapping(pairs: dict[str, bytes], width: int = 0) -> bytes:
    """Return a map with text keys; *width* 16 or 32 forces that header."""
    body = b"".join(text(key) + value for key, value in pairs.items())
    return _header(len(pairs), width, (0x80, 0xDE, 0xDF)) + body


def integers(values: list[int]) -> bytes:
    """Return an array of integers."""
    return array([integer(value) for value in values])


def _header(length: int, width: int, marks: tuple[int, int, int]) -> bytes:
    if width == 32 or length >= 1 << 16:
        return bytes([marks[2]]) + struct.pack(">I", length)
    if width == 16 or length >= 16:
        return bytes([marks[1]]) + struct.pack(">H", length)
    return bytes([marks[0] | length])
