"""What is known of one data-parallel rank: its blocks, and how its stores are treated."""

from typing import Final

from inferencecache.events.block_group import BlockGroup
from inferencecache.events.messages import BlockStored

Route = tuple[BlockGroup, str, int]
"""Where a store goes: group, partition and medium."""

Signature = tuple[int, str, int | None, str, str, int, bool]
"""Everything that decides a store's route."""

_ROUTES_MAX: Final = 256


def signature_of(event: BlockStored) -> Signature:
    """Return what stores with the same route have in common."""
    return (
        event.group_idx,
        event.kv_cache_spec_kind,
        event.lora_id,
        event.lora_name,
        event.medium,
        event.block_size,
        event.is_remote,
    )


class RankSpace:
    """Name space of one rank.

    Args:
        rank: Its number.

    Attributes:
        groups: Blocks by KV cache group.
        prefix_groups: Whether a group makes up prompts' leading parts, where an event said so.
        routes: Routes worked out before; emptied whenever something they rest on changes.
        rank: As given.
        has_tier_events: The engine announces other mediums than the GPU.
        is_vouched_for: The engine is there, and known to be the one that announced the blocks.
        is_forgotten: That was so too long ago to tell anybody of the blocks.
    """

    __slots__ = (
        "groups",
        "has_tier_events",
        "is_forgotten",
        "is_vouched_for",
        "prefix_groups",
        "rank",
        "routes",
    )

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.groups: dict[int, BlockGroup] = {}
        self.prefix_groups: dict[int, bool] = {}
        self.routes: dict[Signature, Route] = {}
        self.has_tier_events = False
        self.is_vouched_for = True
        self.is_forgotten = False

    def anew(self) -> "RankSpace":
        """Return the space of the same rank without anything in it; who is there stays so."""
        space = RankSpace(self.rank)
        space.is_vouched_for = self.is_vouched_for
        space.is_forgotten = self.is_forgotten
        return space

    def doubt(self) -> None:
        """Note that removals may have been lost."""
        for group in self.groups.values():
            group.doubt()

    def has_room_for(self, group_idx: int, groups_max: int) -> bool:
        """Tell whether a group is known or may be."""
        if group_idx in self.groups or group_idx in self.prefix_groups:
            return True
        return max(len(self.groups), len(self.prefix_groups)) < groups_max

    def group(self, group_idx: int) -> BlockGroup:
        """Return a group, made on first use."""
        found = self.groups.get(group_idx)
        if found is None:
            found = self.groups[group_idx] = BlockGroup()
        return found

    def remember(self, event: BlockStored, route: Route) -> None:
        """Keep the route of *event* for stores like it."""
        if len(self.routes) >= _ROUTES_MAX:
            self.routes.clear()
        self.routes[signature_of(event)] = route
