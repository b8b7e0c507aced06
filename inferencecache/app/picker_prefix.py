"""The picker's prefix signal: its reader of prompts, its index, and what it learns."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from inferencecache.app.picker_prompt import PickerPrompts
from inferencecache.app.picker_remote_index import RemoteIndex
from inferencecache.clock import Clock
from inferencecache.picker.choice import Question
from inferencecache.picker.fleet import Candidate, Member, Qualifier, WorkerSet
from inferencecache.picker.prefix import NOTHING_FOUND, PrefixFound
from inferencecache.picker.prefix.index_source import IndexQuestion, IndexSource
from inferencecache.picker.prefix.knowledge import PrefixKnowledge, PrefixKnowledgeParts
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.service import CachePlane
from inferencecache.service.index_matches import IndexMatches
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_prefix import PickerIndexSettings, PickerPrefixSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.settings.target import check_target
from inferencecache.transport.delivery_tls import server_credentials
from inferencecache.transport.drive import drive_slices
from inferencecache.transport.metric_cells import Family
from inferencecache.transport.picker_index import IndexHere
from inferencecache.transport.picker_prefix_metrics import PrefixCounts
from inferencecache.transport.structured_log import EventLog

_FLAGS: Final = "picker-index"
_NAMES_SHOWN: Final = 10
_TICK_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerPrefixParts:
    """What the signal is made of.

    Attributes:
        settings: Limits.
        prompt: How prompts are read.
        choice: How long those are believed to be whose tokens nobody counts.
        index: Where another index is, if that is to be asked.
        clock: The time.
        log: Told of workers that the index does not know.
        plane: Whose index is asked otherwise.
        sightings: When it has heard of whom.
        labels_max: Most workers whose numbers are shown.
    """

    settings: PickerPrefixSettings
    prompt: PickerPromptSettings
    index: PickerIndexSettings
    clock: Clock
    log: EventLog
    plane: CachePlane
    sightings: Sightings
    labels_max: int
    choice: PickerChoiceSettings = field(default_factory=PickerChoiceSettings)


class PickerPrefix:
    """A :class:`PrefixSignal` that begins with the server, since its parts need a loop.

    Until then, and after the end, it knows nothing.

    Args:
        parts: Its collaborators.

    Raises:
        ConfigError: The address of another index has another form, or a file for it cannot be used.
    """

    def __init__(self, parts: PickerPrefixParts) -> None:
        self._parts = parts
        address = parts.index.address
        if address:
            check_target("picker-index-address", address)
        self._credentials = server_credentials(parts.index, _FLAGS)
        self._counts = PrefixCounts(parts.labels_max)
        self._members: list[Member] = []
        self._prompts: PickerPrompts | None = None
        self._remote: RemoteIndex | None = None
        self._knowledge: PrefixKnowledge | None = None

    async def start(self) -> None:
        """Begin, on the running loop."""
        parts = self._parts
        index, credit = self._index()
        prompts = self._prompts = PickerPrompts(
            parts.prompt, parts.clock, parts.log, parts.choice.bytes_per_token
        )
        self._knowledge = PrefixKnowledge(
            PrefixKnowledgeParts(
                settings=parts.settings,
                clock=parts.clock,
                reader=prompts.reader,
                index=index,
                is_index_named=bool(parts.index.address),
                sightings=parts.sightings,
                lacks_tokenizer=prompts.reader.lacks_tokenizer,
                credit=credit,
            )
        )
        self.adopt(self._members)

    async def sense(self, question: Question, candidates: Sequence[Candidate]) -> PrefixFound:
        """Return what is known of a prompt; see :class:`PrefixSignal`."""
        if self._knowledge is None:
            return NOTHING_FOUND
        found = await self._knowledge.signal.sense(question, candidates)
        self._counts.sensed(found)
        return found

    def adopt(self, members: Iterable[Member]) -> None:
        """Take the members of a fleet in the place of all earlier ones."""
        self._members = list(members)
        if self._knowledge is not None and self._prompts is not None:
            self._knowledge.adopt(self._members)
            self._prompts.adopt(each for each in self._members if isinstance(each, WorkerSet))

    def qualifiers_of(self, member: Member) -> tuple[Qualifier, ...]:
        """Return what is to be said of *member*."""
        knowledge = self._knowledge
        return () if knowledge is None else tuple(knowledge.standing.qualifiers_of(member))

    async def run(self) -> None:
        """Forget, for ever, what is over, and tell whom the index should have heard of by now."""
        while True:
            await asyncio.sleep(_TICK_S)
            self.tell_unseen()
            if self._knowledge is not None:
                await drive_slices(self._knowledge.sweep_slices(), self._parts.clock)

    def tell_unseen(self) -> None:
        """Log whom the index should have heard of by now, each once."""
        if self._knowledge is None:
            return
        for worker_set, names in self._knowledge.overdue():
            self._parts.log.warning(
                "picker_index_unseen",
                worker_set=str(worker_set.key),
                endpoints=len(names),
                names=", ".join(sorted(names)[:_NAMES_SHOWN]),
                reason="the index has never heard of these replicas: is their producer running, "
                "and does its --replica-id equal the endpoint's name?",
            )

    def families(self) -> list[Family]:
        """Return a copy of all numbers."""
        if self._knowledge is None or self._prompts is None:
            return []
        return [*self._counts.families(self._knowledge), *self._prompts.families()]

    async def stop(self) -> None:
        """Let go of tokenizers and connections."""
        prompts, remote = self._prompts, self._remote
        self._knowledge = self._prompts = self._remote = None
        if prompts is not None:
            await prompts.stop()
        if remote is not None:
            await remote.close()

    def _index(self) -> tuple[IndexSource, Callable[[IndexQuestion, str, int], None]]:
        """Return where Picks ask, and who is told of the matches that they go by."""
        parts = self._parts
        if parts.index.address:
            self._remote = RemoteIndex(
                parts.index, self._credentials, parts.clock, parts.sightings, parts.log
            )
            return self._remote, _counted_there
        lookup = parts.plane.lookup_settings
        matches = IndexMatches(parts.plane.index, parts.clock, lookup)
        return IndexHere(matches, parts.clock, lookup.waiting_max), matches.credit


def _counted_there(_question: IndexQuestion, _replica_id: str, _tokens: int) -> None:
    """Count nothing: a lookup counts what it delivers."""
