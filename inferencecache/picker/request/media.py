"""How much of the turns of a chat is no text: pictures, sound and files, in base64.

They stand in ``data:`` URLs, and as ``data`` beside what says that it is base64:

    {"image_url": {"url": "data:image/png;base64,iVBORw0KGgo..."}}
    {"source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo..."}}
    {"input_audio": {"data": "UklGRiQAAAB...", "format": "wav"}}

Rules of this file: only what stands where engines look for pictures is one. A text that quotes a
picture is a text, and so is what a tool was called with, whatever they look like. Neither sign can
stand in a text by chance: within one its quotes are escaped.
"""

import re
from typing import Final

from inferencecache.picker.request.telling_words import DATA_KEY

_DATA_URL: Final = b";base64,"
_URL_SIGN: Final = b";"
"""Looking for one byte takes a small part of looking for several."""

_NEAR_BYTES: Final = 256
"""What says of base64 that it is some stands so near it."""

_STARTS_AS_URL: Final = re.compile(
    rb'"(?:url|image_url|video_url|audio_url|file_url|file_data|image|video|audio)"'
    rb'[ \t\n\r]*:[ \t\n\r]*"data:[^"]*\Z'
)
_SAYS_BASE64: Final = re.compile(
    rb'"type"[ \t\n\r]*:[ \t\n\r]*"base64"|"format"[ \t\n\r]*:[ \t\n\r]*"'
)
_STARTS_VALUE: Final = re.compile(rb'[ \t\n\r]*:[ \t\n\r]*"')
_IS_BASE64: Final = re.compile(rb"[A-Za-z0-9+/=_\\-]{%d}" % _NEAR_BYTES)


def media_most(text: bytes) -> int:
    """Return how many pictures *text* has at most; most have none, and this is all they cost."""
    return urls_most(text) + text.count(DATA_KEY)


def urls_most(text: bytes) -> int:
    """Return how many pictures *text* has at most if it has no member named ``data``."""
    return text.count(_DATA_URL) if _URL_SIGN in text else 0


def media_bytes(text: bytes) -> int:
    """Return how many bytes of *text*, valid JSON, are base64.

    >>> media_bytes(b'[{"image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]')
    12
    >>> media_bytes(b'[{"text": "what is data:image/png;base64,iVBORw0KGgo=?"}]')
    0

    Complexity: O(n).
    """
    return _in_urls(text) + _in_members(text)


def _in_urls(text: bytes) -> int:
    total, at = 0, text.find(_DATA_URL)
    while at >= 0:
        start = end = at + len(_DATA_URL)
        if _STARTS_AS_URL.search(text, max(at - _NEAR_BYTES, 0), at):
            end = _end_of_string(text, start)
            total += end - start
        at = text.find(_DATA_URL, end)
    return total


def _in_members(text: bytes) -> int:
    total, at = 0, text.find(DATA_KEY)
    while at >= 0:
        behind = at + len(DATA_KEY)
        value = _STARTS_VALUE.match(text, behind)
        if value and _IS_BASE64.match(text, value.end()):
            end = _end_of_string(text, value.end())
            if _SAYS_BASE64.search(_around(text, at, end)):
                total += end - value.end()
        at = text.find(DATA_KEY, behind)
    return total


def _around(text: bytes, start: int, end: int) -> bytes:
    """Return what the same object holds before *start* and after *end*, where it is near."""
    before = text[max(start - _NEAR_BYTES, 0) : start]
    after = text[end : end + _NEAR_BYTES]
    return before[before.rfind(b"{") + 1 :] + after.partition(b"}")[0]


def _end_of_string(text: bytes, start: int) -> int:
    end = text.find(b'"', start)
    return len(text) if end < 0 else end
