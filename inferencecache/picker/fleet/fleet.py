"""The fleet: everything that can be picked, at one moment.

A fleet never changes; a reload puts another in its place, and a Pick works on the one it began
with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from inferencecache.picker.fleet.member import ObjectName
from inferencecache.picker.fleet.pool import Pool


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All pools.

    Attributes:
        pools: By namespace and name.
        everything: A pool of all members, for a Pick that names none.
    """

    pools: Mapping[ObjectName, Pool] = field(default_factory=dict)
    everything: Pool = field(
        default_factory=lambda: Pool(key=ObjectName(namespace="default", name=""), tiers=())
    )


EMPTY_FLEET: Final = Fleet()
"""Nothing to pick from."""
