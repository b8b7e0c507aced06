"""What a client says in headers, as the picker takes it."""

from typing import Final
from urllib.parse import quote

_QOS_NAMES: Final = frozenset({"INTERACTIVE", "BATCH", "DEFERRABLE"})
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F))).replace("%", "")


def qos_name(text: str) -> str:
    """Return the QoS class that a header names; the picker's default for anything unknown.

    >>> qos_name(" batch "), qos_name("?")
    ('BATCH', 'INTERACTIVE')
    """
    name = text.strip().upper()
    return name if name in _QOS_NAMES else "INTERACTIVE"


def printable(text: str, chars_max: int) -> str:
    r"""Return *text* as a header may carry it: ASCII, shortened, the rest as percent escapes.

    >>> printable("modèle\r\nx: y", 64)
    'mod%C3%A8le%0D%0Ax: y'
    """
    return quote(text[:chars_max], safe=_PRINTABLE, errors="replace").strip()
