"""Where a text may be taken apart without changing its tokens: before special tokens."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

SPACING: Final = 1_024
"""Characters of a piece, at least: each costs a name and a place in a table."""


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

    The expression is a tree of letters, so that its speed does not depend on how many there are.
    """
    written = [word for word in words if word]
    return re.compile(_tree(sorted(written))) if written else None


def _tree(words: Sequence[str]) -> str:
    """Return the expression of sorted words; an empty one is the end of one that others go on."""
    branches: OrderedDict[str, list[str]] = OrderedDict()
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    is_end = branches.pop("", None) is not None
    if not branches:
        return ""
    written = "|".join(re.escape(first) + _tree(rest) for first, rest in branches.items())
    return f"(?:{written}){'?' if is_end else ''}" if is_end or len(branches) > 1 else written
