"""One report as it came over the wire, and what the oracle reads from it."""

from dataclasses import dataclass, replace
from itertools import accumulate
from math import isfinite
from typing import NamedTuple

from inferencecache.types import INT32_MAX, StatsReport


class PlainPrefix(NamedTuple):
    """One PrefixEntry as it came over the wire."""

    prefix_hash: bytes = b""
    token_count: int = 0
    block_hashes: tuple[bytes, ...] = ()
    block_token_counts: tuple[int, ...] = ()
    tier: int = 0
    adapter_id: str = ""

    def is_chain(self) -> bool:
        """Return whether it carries either array of a chain."""
        return bool(self.block_hashes or self.block_token_counts)

    def claims(self) -> list[tuple[bytes, int]]:
        """Return what it says is held: (hash, token count); nothing if malformed."""
        counts = self.block_token_counts
        sums = [min(total, INT32_MAX) for total in accumulate(counts)]
        claims = list(zip(self.block_hashes, sums, strict=False))
        if self.prefix_hash or not self.is_chain():
            claims.append((self.prefix_hash, self.token_count))
        is_sound = len(self.block_hashes) == len(counts) and min(counts, default=0) >= 0
        is_sound = is_sound and all(name and count >= 0 for name, count in claims)
        return claims if is_sound else []


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainUpdate:
    """One CacheStateUpdate; *timestamp_ns* 0 means now."""

    tenant_id: str
    model_id: str
    replica_id: str
    hash_scheme: str
    timestamp_ns: int = 0
    adapter_id: str = ""
    prefixes: tuple[PlainPrefix, ...] = ()
    stats: StatsReport | None = None


@dataclass(slots=True)
class PlainStats:
    """The statistics of one replica in one (tenant, model)."""

    stats: StatsReport
    reported_ns: int
    last_seen_ns: int


def finite(stats: StatsReport) -> StatsReport:
    """Return the report with ratios that are no numbers as 0."""
    hit_rate = stats.hit_rate if isfinite(stats.hit_rate) else 0.0
    pressure = stats.pressure if isfinite(stats.pressure) else 0.0
    return replace(stats, hit_rate=hit_rate, pressure=pressure)
