"""The tokenizers in memory: loaded once, again when their files change, never too many."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inferencecache.clock import Clock
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.transport.file_watch import FileWatch
from inferencecache.transport.giving_way import giving_way
from inferencecache.transport.structured_log import EventLog
from inferencecache.transport.tokenize_content import TokenizerContent
from inferencecache.transport.tokenize_files import TokenizerPlace
from inferencecache.transport.tokenize_guard import WorkFailure
from inferencecache.transport.tokenize_loading import load_guarded, load_limits

if TYPE_CHECKING:
    from inferencecache.transport.tokenize_local import LocalTokenizer


@dataclass(frozen=True, slots=True)
class Loaded:
    """A tokenizer in memory.

    Attributes:
        tokenizer: It.
        number: Of no other, nor of this one with other files.
    """

    tokenizer: "LocalTokenizer"
    number: int


class _Slot:
    """A place and what was found there."""

    def __init__(self, place: TokenizerPlace, clock: Clock) -> None:
        self.place = place
        self.watch = FileWatch(place.files, clock)
        self.loaded: Loaded | None = None
        self.digest = b""
        self.next_check_ns = 0
        self.check: asyncio.Task[None] | None = None
        self.was_looked_at = False


class TokenizerShelf:
    """Keeps tokenizers.

    A bad file never takes the place of a good one, and is read once until it changes. What was
    written anew and says the same is not loaded again: while the library makes a tokenizer no other
    thread has its turn, for a quarter of a second where its file has 4 MB.

    Args:
        settings: How many, how large, and how often their files are looked at.
        clock: The time.
        log: Told of what was loaded and of what could not be.
        threads: Load them.
    """

    def __init__(
        self, settings: PickerPromptSettings, clock: Clock, log: EventLog, threads: Executor
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._log = log
        self._threads = threads
        self._limits = load_limits(settings, clock)
        self._slots: OrderedDict[TokenizerPlace, _Slot] = OrderedDict()
        self._loads = 0

    def __len__(self) -> int:
        return sum(slot.loaded is not None for slot in self._slots.values())

    def ready(self, place: TokenizerPlace) -> Loaded | None:
        """Return the tokenizer at *place* if it is in memory; never waits."""
        slot = self._used(place)
        return slot.loaded

    def lacks(self, place: TokenizerPlace) -> bool:
        """Return whether somebody has looked at *place* and found no tokenizer."""
        slot = self._slots.get(place)
        return slot is not None and slot.loaded is None and slot.was_looked_at

    async def find(self, place: TokenizerPlace) -> Loaded | None:
        """Return the tokenizer at *place*, None if there is none; waits until that is known."""
        slot = self._used(place)
        if slot.loaded is None and slot.check is not None:
            await asyncio.wait({slot.check})
        return slot.loaded

    def adopt(self, places: Iterable[TokenizerPlace]) -> None:
        """Begin to load what is going to be needed, and let go of everything else."""
        wanted = list(dict.fromkeys(places))[: self._settings.tokenizers_max]
        for place in set(self._slots) - set(wanted):
            del self._slots[place]
        for place in wanted:
            self._used(place)

    def _used(self, place: TokenizerPlace) -> _Slot:
        """Return the slot of *place*, whose files are looked at if it is time to."""
        slot = self._slots.get(place)
        if slot is None:
            slot = self._slots[place] = _Slot(place, self._clock)
            if len(self._slots) > self._settings.tokenizers_max:
                self._slots.popitem(last=False)
        self._slots.move_to_end(place)
        now_ns = self._clock.monotonic_ns()
        if slot.check is None and now_ns >= slot.next_check_ns:
            slot.next_check_ns = now_ns + self._settings.reload_check_ns
            slot.check = asyncio.get_running_loop().create_task(self._look(slot))
        return slot

    async def _look(self, slot: _Slot) -> None:
        """Load what is new at a place."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(self._threads, self._load_changed, slot)
        finally:
            slot.check = None
            slot.was_looked_at = True
        if found is None:
            return
        if isinstance(found, WorkFailure):
            self._log.warning(
                "picker_tokenizer_not_loaded",
                directory=slot.place.directory,
                error=found.words,
                keeps_former=slot.loaded is not None,
            )
            return
        self._loads += 1
        slot.loaded = Loaded(found, self._loads)
        self._log.info("picker_tokenizer_loaded", directory=slot.place.directory)

    def _load_changed(self, slot: _Slot) -> "LocalTokenizer | WorkFailure | None":
        """Return what is at a place, None if that has not changed; runs in a thread."""
        if not slot.watch.take_change():
            return None
        content = TokenizerContent(slot.place, self._limits.file_bytes_max)
        digest = content.digest
        if digest == slot.digest:
            return None
        found = giving_way(lambda: load_guarded(slot.place, self._limits, content))
        if not isinstance(found, WorkFailure):
            slot.digest = digest
        return found
