"""The fleet: everything that can be picked, at one moment.

A fleet never changes; a reload puts another in its place, and a Pick works on the one it began
with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from inferencecache.picker.fleet.member import ObjectName
from inferencecache.picker.fleet.pool import Pool
from inferencecache.picker.fleet.rewrites import ModelRewrite
from inferencecache.picker.fleet.rules import PickerPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """All pools, and the rules for whoever asks for one of their models.

    Attributes:
        pools: By namespace and name.
        everything: A pool of all members, for a Pick that names none.
        policies: Sorted by namespace and name.
        rewrites: Sorted by namespace and name.
    """

    pools: Mapping[ObjectName, Pool] = field(default_factory=dict)
    everything: Pool = field(
        default_factory=lambda: Pool(key=ObjectName(namespace="default", name=""), tiers=())
    )
    policies: tuple[PickerPolicy, ...] = ()
    rewrites: tuple[ModelRewrite, ...] = ()


EMPTY_FLEET: Final = Fleet()
"""Nothing to pick from."""
