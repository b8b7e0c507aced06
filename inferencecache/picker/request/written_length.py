r"""How long a text is that is written in JSON, whatever its writer has escaped.

Many writers put every letter that is not ASCII as six bytes, ``\u043f``, where UTF-8 takes two or
three and a tokenizer reads those. Six would make a prompt in Russian three times as long as it is.
Escapes of two bytes, ``\n``, are few and close to what they stand for, and stay as they are.
"""

from typing import Final

_ESCAPE: Final = rb"\u"
_ESCAPED_BACKSLASH: Final = rb"\\u"
_SHORT_ESCAPE: Final = rb"\u0"
"""Of letters up to U+0FFF, nearly all of which take two bytes; the others take three."""

_PICTOGRAMS: Final = (rb"\ud83", rb"\uD83")
"""First halves of nearly all letters that take two escapes; these take four bytes."""

_ESCAPE_BYTES: Final = 6
_SHORT_BYTES: Final = 2
_LONG_BYTES: Final = 3
_PAIR_BYTES: Final = 4

_SAMPLES: Final = 32
_SAMPLE_BYTES: Final = 512
"""Of a text that is longer than all samples together only they are looked at."""


def unescaped_length(text: bytes) -> int:
    r"""Return about how many bytes *text* takes in UTF-8.

    Of a long text it is reckoned from samples that stand at equal distances.

    >>> unescaped_length(rb"\u043f\u0440\u0438")
    6
    >>> unescaped_length(b"a\\nb")
    4

    Complexity: O(min(n, 16 KiB)).
    """
    size = len(text)
    sample = text
    if size > _SAMPLES * _SAMPLE_BYTES:
        step = size // _SAMPLES
        sample = b"".join(
            text[start : start + _SAMPLE_BYTES] for start in range(0, step * _SAMPLES, step)
        )
    escapes = sample.count(_ESCAPE)
    if not escapes:
        return size
    escapes -= sample.count(_ESCAPED_BACKSLASH)
    short = min(sample.count(_SHORT_ESCAPE), escapes)
    surplus = short * (_ESCAPE_BYTES - _SHORT_BYTES)
    surplus += (escapes - short) * (_ESCAPE_BYTES - _LONG_BYTES)
    surplus += sum(map(sample.count, _PICTOGRAMS)) * (2 * _LONG_BYTES - _PAIR_BYTES)
    return size - surplus * size // len(sample)
