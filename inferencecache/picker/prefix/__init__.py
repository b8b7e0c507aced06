"""The prefix signal: how much of a prompt each candidate has in its cache."""

from inferencecache.picker.prefix.signal import (
    NO_MATCH,
    NOTHING_FOUND,
    CandidateMatch,
    NoPrefixSignal,
    PrefixFound,
    PrefixSignal,
    PrefixSource,
    PrefixTrace,
)

__all__ = [
    "NOTHING_FOUND",
    "NO_MATCH",
    "CandidateMatch",
    "NoPrefixSignal",
    "PrefixFound",
    "PrefixSignal",
    "PrefixSource",
    "PrefixTrace",
]
