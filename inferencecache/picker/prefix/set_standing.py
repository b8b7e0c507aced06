"""How worker sets stand to the index: who must be in it, who is not, and what people are told."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from inferencecache.picker.fleet import Member, ObjectName, PrefixUse, Qualifier, WorkerSet
from inferencecache.picker.prefix.audit import CacheAudit
from inferencecache.picker.prefix.sightings import Sightings

_AUTO: Final = PrefixUse.AUTO
_PRECISE: Final = PrefixUse.PRECISE


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexKind:
    """What index there is.

    Attributes:
        is_there: Whether there is any.
        is_named: Whether somebody has said which one to ask, so that it is missed where it fails.
        hears_replicas: Whether it is told of every report; if not, silence means nothing.
    """

    is_there: bool
    is_named: bool
    hears_replicas: bool


class SetStanding:
    """Knows of each worker set whether the index is asked, and whether it knows its workers.

    Args:
        kind: What index there is.
        sightings: When it has heard of whom.
        audit: What its claims are worth.
        lacks_tokenizer: Whether a set has a tokenizer that cannot be read.
    """

    def __init__(
        self,
        kind: IndexKind,
        sightings: Sightings,
        audit: CacheAudit,
        lacks_tokenizer: Callable[[WorkerSet], bool] = lambda _: False,
    ) -> None:
        self._kind = kind
        self._sightings = sightings
        self._audit = audit
        self._lacks_tokenizer = lacks_tokenizer
        self._sets: dict[ObjectName, WorkerSet] = {}
        self._heard: set[ObjectName] = set()
        self._unseen_since_ns: dict[str, int] = {}

    def adopt(self, members: Iterable[Member], now_ns: int) -> None:
        """Take the members of a fleet in the place of all earlier ones.

        Complexity: O(endpoints).
        """
        sets = {each.key: each for each in members if isinstance(each, WorkerSet)}
        names = {endpoint.name for each in sets.values() for endpoint in each.endpoints}
        before = self._unseen_since_ns
        changed = {key for key, each in sets.items() if self._sets.get(key) != each}
        self._unseen_since_ns = {name: before.get(name, now_ns) for name in names}
        self._heard = (self._heard & sets.keys()) - changed
        self._sets = sets

    def asks_index(self, worker_set: WorkerSet) -> bool:
        """Return whether the index is asked about *worker_set*, and missed where it cannot say."""
        use = worker_set.prefix
        if use is not _AUTO or not self._kind.is_there:
            return use is _PRECISE
        says = (
            worker_set.tokenizer
            or worker_set.tokenize_url
            or worker_set.block_size_tokens
            or worker_set.hash_scheme
            or worker_set.index_tenant
        )
        return bool(says) or self._kind.is_named or self.is_heard(worker_set)

    def is_cold(self, worker_set: WorkerSet) -> bool:
        """Return whether the index, which would know, has never heard of any of the workers."""
        if not self._kind.is_there:
            return True
        return self._kind.hears_replicas and not self.is_heard(worker_set)

    def is_heard(self, worker_set: WorkerSet) -> bool:
        """Return whether the index has ever heard of one of the workers.

        Complexity: O(endpoints) until it has, then O(1).
        """
        if worker_set.key in self._heard:
            return True
        seen_ns = self._sightings.seen_ns
        if not any(endpoint.name in seen_ns for endpoint in worker_set.endpoints):
            return False
        if worker_set.key in self._sets:
            self._heard.add(worker_set.key)
        return True

    def qualifiers_of(self, member: Member) -> Iterator[Qualifier]:
        """Yield what is to be said of *member*."""
        if not isinstance(member, WorkerSet) or not self.asks_index(member):
            return
        if self.is_cold(member):
            yield Qualifier.INDEX_COLD
        if self._lacks_tokenizer(member):
            yield Qualifier.TOKENIZER_MISSING
        if self._audit.is_suspect(endpoint.address for endpoint in member.endpoints):
            yield Qualifier.TOKENIZER_SUSPECT

    def overdue(self, now_ns: int, limit_ns: int) -> list[tuple[WorkerSet, list[str]]]:
        """Return the workers that the index should have heard of by now, each once, by set.

        Args:
            now_ns: Monotonic time.
            limit_ns: How long it may take since they were first in the fleet.

        Complexity: O(endpoints that it has not heard of).
        """
        if not self._kind.is_there or not self._kind.hears_replicas:
            return []
        waiting, seen_ns = self._unseen_since_ns, self._sightings.seen_ns
        due: set[str] = set()
        for name, since_ns in list(waiting.items()):
            if name in seen_ns:
                del waiting[name]
            elif now_ns - since_ns >= limit_ns:
                due.add(name)
                del waiting[name]
        if not due:
            return []
        found = []
        for worker_set in self._sets.values():
            names = [each.name for each in worker_set.endpoints if each.name in due]
            if names and self.asks_index(worker_set):
                found.append((worker_set, names))
        return found
