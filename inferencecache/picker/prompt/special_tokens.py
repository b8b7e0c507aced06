"""Where a text may be taken apart without changing its tokens: before special tokens."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

SPACING: Final = 1_024
"""Characters of a piece, at least: each costs a name and a place in a table."""

_LEVELS_MAX: Final = 50
"""Of a tree. Below, words stand side by side: neither it nor its expression may go too deep."""


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Where a text may be taken apart.

    Attributes:
        pattern: Finds every token that is taken out of a text first.
        marking: Those of them that leave what stands before them as it is.
    """

    pattern: re.Pattern[str]
    marking: frozenset[str]


def pieces_of(text: str, special: SpecialTokens | None, spacing: int = SPACING) -> list[str]:
    """Return *text* in pieces that begin with special tokens.

    Args:
        text: All of it.
        special: Those tokens; None leaves the text whole.
        spacing: Characters of a piece, at least.
    """
    if special is None:
        return [text]
    places = [0]
    for match in special.pattern.finditer(text):
        if match.start() - places[-1] >= spacing and match[0] in special.marking:
            places.append(match.start())
    return [text[start:end] for start, end in pairwise((*places, len(text)))]


def any_of(words: Sequence[str]) -> re.Pattern[str] | None:
    """Return what finds the longest of *words* at the first place where there is one.

    The expression is a tree of what words have in common, so that its speed does not depend on how
    many there are.
    """
    written = [word for word in words if word]
    return re.compile(_tree(sorted(written))) if written else None


def _tree(words: Sequence[str], level: int = 0) -> str:
    """Return the expression of sorted words; an empty one is the end of one that others go on."""
    if level == _LEVELS_MAX:  # of two words of which one goes on from the other, the longer first
        return f"(?:{'|'.join(map(re.escape, reversed(words)))})"
    shared = _shared(words[0], words[-1])
    branches: dict[str, list[str]] = {}
    for word in words:
        rest = word[len(shared) :]
        branches.setdefault(rest[:1], []).append(rest)
    is_end = branches.pop("", None) is not None
    written = "|".join(_tree(rest, level + 1) for rest in branches.values())
    if branches and (is_end or len(branches) > 1):
        written = f"(?:{written}){'?' if is_end else ''}"
    return re.escape(shared) + written


def _shared(first: str, last: str) -> str:
    """Return what both begin with, and so do all words that are sorted between them."""
    pairs = enumerate(zip(first, last, strict=False))
    length = next((number for number, (one, other) in pairs if one != other), len(first))
    return first[:length]
