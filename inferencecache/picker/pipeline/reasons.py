"""What plugins add to the reason of a Pick."""

from typing import Final

_TEXT_MAX: Final = 200
_SEPARATORS: Final = str.maketrans({";": ",", "=": ":"})


def token_text(text: str) -> str:
    """Return *text* as it may stand behind ``key=``: one printable line, not too long.

    >>> token_text("no; a=b")
    'no, a:b'
    """
    shortened = text[:_TEXT_MAX].translate(_SEPARATORS)
    if shortened.isascii() and shortened.isprintable():
        return shortened
    return "".join(mark if mark.isascii() and mark.isprintable() else "_" for mark in shortened)
