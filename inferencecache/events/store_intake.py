"""What becomes of a store: it is placed, waits for its parent, or is dropped for a cause.

Rules of this file
------------------
* A store whose parent is unknown waits or is dropped; it never becomes a prompt's start.
* Where a store goes is worked out once per signature and remembered as long as that holds.
"""

from collections.abc import Sequence
from itertools import islice

from inferencecache.events.adapters import AdapterNames, parse_adapter_names
from inferencecache.events.admission import Admission, is_prefix_group
from inferencecache.events.ledger import Ledger
from inferencecache.events.lone_stores import LoneStores
from inferencecache.events.mapper_counters import Drop, MapperCounters
from inferencecache.events.mediums import GPU_LANE, UNKNOWN_LANE
from inferencecache.events.messages import BlockStored, Event
from inferencecache.events.operations import Changes
from inferencecache.events.orphans import Orphans
from inferencecache.events.placer import Placer, Placing
from inferencecache.events.rank_space import RankSpace, Route, signature_of
from inferencecache.settings.producer import MapperSettings


class StoreIntake:
    """Takes in the stores of one replica.

    Args:
        settings: Block size, bounds and choices.
        ledger: Where blocks and keys are kept.
        orphans: Who waits for a parent.
        counters: What happens is counted here.
    """

    def __init__(
        self, settings: MapperSettings, ledger: Ledger, orphans: Orphans, counters: MapperCounters
    ) -> None:
        self._settings = settings
        self._ledger = ledger
        self._orphans = orphans
        self._counters = counters
        self._lone_stores = LoneStores(ledger, settings.block_size_tokens, counters)
        self._placer = Placer(ledger, settings.block_size_tokens, counters)
        names = parse_adapter_names(settings.lora_adapter_names)
        self._admission = Admission(
            index_size=settings.block_size_tokens,
            adapters=AdapterNames(names, use_event_name=settings.lora_name_from_event),
            counters=counters,
            keys=ledger.keys,
            adapters_max=settings.adapters_max,
        )

    def place(
        self,
        space: RankSpace,
        events: Sequence[Event],
        start: int,
        now_ns: int | None,
        changes: Changes,
    ) -> int:
        """Place the store at *start*, and with it plain ones that follow if no store waits.

        Args:
            space: Rank they came from.
            events: Events in order.
            start: Position of a store.
            now_ns: Time of its arrival; None if it has waited before and must not again.
            changes: Where operations go.

        Returns:
            How many events were placed; 0 if the first waits for its parent or is dropped.
        """
        event = events[start]
        assert isinstance(event, BlockStored), "only stores are placed"  # noqa: S101 - ours
        signature = signature_of(event)
        route = space.routes.get(signature) if event.packed_tokens else None
        if route is None:
            route = self._find_route(space, event, changes)
            if route is None:
                return 0
        elif self._is_lone(event, route):
            # A store that waits comes right after the one it waits for.
            end = start + 1 if self._orphans.blocks_total else len(events)
            plain = islice(events, start, end)
            placed = self._lone_stores.place(route, plain, signature, changes)
            if placed:
                return placed
        return int(self._place(space, route, event, now_ns, changes))

    def _is_lone(self, event: BlockStored, route: Route) -> bool:
        """Tell whether a store may be one that has a short way."""
        size = self._settings.block_size_tokens
        return len(event.block_hashes) == 1 and event.block_size == size and route[2] == GPU_LANE

    def _place(
        self,
        space: RankSpace,
        route: Route,
        event: BlockStored,
        now_ns: int | None,
        changes: Changes,
    ) -> bool:
        """Place a store and return True, or let it wait for its parent, or drop it."""
        hashes, parent_hash, parent = set(event.block_hashes), event.parent_block_hash, None
        if len(hashes) < len(event.block_hashes):
            self._counters.drop(Drop.REPEATED_HASH)
            return False
        if parent_hash is not None:
            parent = route[0].blocks.get(parent_hash)
            if parent is None or parent_hash in hashes:
                self._without_parent(space.rank, event, now_ns)
                return False
        placing = Placing(route[0], event, route[1], route[2], parent)
        cause = self._admission.parent_fault(placing)
        if cause is not None:
            self._counters.drop(cause)
            return False
        self._placer.store(placing, changes)
        return True

    def _find_route(self, space: RankSpace, event: BlockStored, changes: Changes) -> Route | None:
        """Work out where stores like *event* go; None when this one is done with."""
        cause = self._refusal(space, event)
        if cause is not None:
            self._counters.drop(cause)
            return None
        lane = self._counters.lane(event.medium)
        space.has_tier_events |= lane != GPU_LANE
        group = space.group(event.group_idx)
        if not event.packed_tokens:
            self._ledger.copy_known(group, event, lane, changes)
            return None
        adapter_id = self._admission.adapter_of(event)
        if adapter_id is None:
            return None
        usual_size = group.block_size
        cause = self._admission.size_fault(event, group, lane)
        if cause is not None:
            self._refuse(cause, (group, adapter_id, lane), event, changes)
            return None
        if group.block_size != usual_size:
            space.routes.clear()
        route = (group, adapter_id, lane)
        if lane != UNKNOWN_LANE:
            space.remember(event, route)
        return route

    def _refusal(self, space: RankSpace, event: BlockStored) -> Drop | None:
        """Return why a store is not looked at further, None if it is."""
        if event.is_remote:
            return Drop.REMOTE
        if not space.has_room_for(event.group_idx, self._settings.groups_max):
            return Drop.GROUPS
        known = space.prefix_groups.get(event.group_idx)
        is_prefix = is_prefix_group(event.kv_cache_spec_kind, event.group_idx, known=known)
        if event.kv_cache_spec_kind:
            space.prefix_groups[event.group_idx] = is_prefix
        if is_prefix != known:
            space.routes.clear()
        if not is_prefix:
            gone = space.groups.pop(event.group_idx, None)
            if gone is not None:
                self._ledger.leave(gone)
            return Drop.GROUP
        return None if event.block_hashes else Drop.EMPTY

    def _refuse(self, cause: Drop, route: Route, event: BlockStored, changes: Changes) -> None:
        """Drop a store whose blocks cannot be made new; copies of known ones still count."""
        if cause == Drop.FOREIGN_CHUNK:
            self._ledger.copy_known(route[0], event, route[2], changes)
        else:
            self._counters.drop(cause)

    def _without_parent(self, rank: int, event: BlockStored, now_ns: int | None) -> None:
        """Let a store wait for its parent, unless it is its own."""
        if event.parent_block_hash in event.block_hashes:
            self._counters.drop(Drop.SELF_PARENT)
            return
        if now_ns is None:
            return
        self._counters.orphaned_blocks += len(event.block_hashes)
        self._counters.orphans_dropped += self._orphans.hold(rank, event, now_ns)
