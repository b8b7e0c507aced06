"""Reports from their bytes, none of them in one long step.

A short message is parsed as it comes. A long one is cut into pieces that are parsed between turns
of the loop, and one such message at a time, so that a turn has one piece of all that are there.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from google.protobuf.message import DecodeError

from inferencecache.index import StateUpdate
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.transport.convert_report import (
    NAME_BYTES_MAX,
    SINGLE_ENTRIES,
    UpdateSteps,
    add_in_slices,
    new_update,
    take_head,
    update_at_once,
    update_of_entries,
    update_steps,
)
from inferencecache.transport.drive import drive
from inferencecache.transport.wire_pieces import MessagePieces
from inferencecache.transport.wire_update import WIRE_UPDATE, WireUpdate, read_update

_pieces: Final = MessagePieces(WIRE_UPDATE.DESCRIPTOR, NAME_BYTES_MAX)


class ReportReader:
    """Reads serialised CacheStateUpdates.

    Args:
        settings: What is read in one go, and how much one update may carry.
    """

    __slots__ = ("_settings", "_turn")

    def __init__(self, settings: GrpcSettings) -> None:
        self._settings = settings
        self._turn = asyncio.Lock()

    async def read(self, data: bytes) -> StateUpdate | None:
        """Return an update, or None where it does not parse or carries too much.

        Args:
            data: The message as received.
        """
        settings = self._settings
        if len(data) > settings.parse_bytes_max:
            async with self._turn:
                return await drive(long_update_steps(data, settings))
        update = update_of_entries(data)
        if update is not None:
            return update
        message = read_update(data)
        if message is None:
            return None
        if len(message.prefixes) < SINGLE_ENTRIES:
            return update_at_once(message)
        return await drive(update_steps(message, settings.ingest_slice_entries))


def long_update_steps(data: bytes, settings: GrpcSettings) -> UpdateSteps:
    """Read a serialised CacheStateUpdate in slices, of which parsing the message is a part.

    Args:
        data: The message.
        settings: Size of a slice, and how much one update may carry.
    """
    update, message = new_update(), WIRE_UPDATE()
    try:
        for piece in _pieces.cut(data):
            message.MergeFromString(piece)
            yield
            yield from _move_entries(message, update, settings)
            if update.entries + update.chain_blocks > settings.update_blocks_max:
                return None
    except DecodeError:
        return None
    take_head(update, message)
    return update


def _move_entries(
    message: WireUpdate, update: StateUpdate, settings: GrpcSettings
) -> Iterator[None]:
    """Add the entries in *message* to *update*, and leave none."""
    prefixes = message.prefixes[:]
    message.ClearField("prefixes")
    return add_in_slices(
        update, prefixes, settings.ingest_slice_entries, settings.update_blocks_max
    )
