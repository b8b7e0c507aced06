"""A cache server that notes what happens to keys, and can hold back the answers to evictions."""

import asyncio
from collections.abc import AsyncIterator

import grpc
from scripted_cache_server import Acked, Context, ScriptedServer

from inferencecache.v1alpha1 import inferencecache_pb2 as pb


class NotingServer(ScriptedServer):
    """Notes clears, stores and evictions in the order in which they are answered.

    Attributes:
        notes: What happened, as kind and key.
        stamps_us: Every timestamp that came with an update or an event.
        evicting: Set once an eviction has come.
        may_evict: While it is not set, evictions are not answered.
        refused_keys: With what their evictions are answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[tuple[str, bytes]] = []
        self.stamps_us: set[int] = set()
        self.evicting = asyncio.Event()
        self.may_evict = asyncio.Event()
        self.may_evict.set()
        self.refused_keys: dict[bytes, grpc.StatusCode] = {}
        self.on_report = self.note_report

    async def note_report(
        self, updates: AsyncIterator[pb.CacheStateUpdate], _context: Context
    ) -> Acked:
        """Note every stored key."""
        async for update in updates:
            self.stamps_us.add(update.timestamp_us)
            self.notes += [("store", key) for p in update.prefixes for key in p.block_hashes]
        return self.ack

    async def publish(self, event: pb.CacheEvent, context: Context) -> Acked:
        """Note an eviction when it is answered."""
        if self.event_status is not None:
            await context.abort(self.event_status, "scripted")
        self.stamps_us.add(event.timestamp_us)
        if event.type == pb.CacheEvent.ALL_CLEARED:
            self.notes.append(("clear", b""))
            return self.ack
        self.evicting.set()
        await self.may_evict.wait()
        if event.prefix_hash in self.refused_keys:
            await context.abort(self.refused_keys[event.prefix_hash], "scripted")
        self.notes.append(("evict", event.prefix_hash))
        return self.ack
