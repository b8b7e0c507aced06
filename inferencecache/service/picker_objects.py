"""The objects of a picker in force: a fleet for those who pick, and states for people."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Any, Final

from inferencecache.clock import Clock
from inferencecache.picker.fleet import EMPTY_FLEET, Fleet, Member, Qualifier
from inferencecache.resources import LoadState, ObjectKey, ResourceKind
from inferencecache.resources.inference_pool import INFERENCE_POOL
from inferencecache.resources.inference_provider import INFERENCE_PROVIDER
from inferencecache.resources.inference_worker_set import INFERENCE_WORKER_SET
from inferencecache.service.picker_conditions import state_by_profiles
from inferencecache.service.picker_manifest import Manifest, Seen, Shown, counts_of
from inferencecache.service.picker_resources import QualifierSource, fleet_of_slices, members_slices
from inferencecache.settings.fleet import FleetSettings

SHOWN_KINDS: Final[tuple[ResourceKind[Any], ...]] = (
    INFERENCE_PROVIDER,
    INFERENCE_WORKER_SET,
    INFERENCE_POOL,
)
"""The kinds whose objects are shown, in this order."""

_SLICE_OBJECTS: Final = 50


class Unqualified:
    """Says nothing of anybody."""

    def qualifiers_of(self, member: Member) -> tuple[Qualifier, ...]:  # noqa: ARG002 - as asked
        """Return nothing."""
        return ()


class JointQualifiers:
    """What several say of a member.

    Args:
        sources: Who.
    """

    def __init__(self, sources: Sequence[QualifierSource]) -> None:
        self._sources = tuple(sources)

    def qualifiers_of(self, member: Member) -> tuple[Qualifier, ...]:
        """Return what any of them says."""
        return tuple(said for source in self._sources for said in source.qualifiers_of(member))


class PickerObjects:
    """Worker sets, providers, pools and rules, as last loaded.

    Args:
        settings: What the objects leave unsaid.
        clock: Says since when.
        ages: Whether an object that does not say when it was made is as old as its first load;
            if not, nobody can tell.

    Attributes:
        fleet: Everything that can be picked. Another one takes its place at each load.
        qualifiers: Knows how members do; whoever picks puts itself here.
        profiles: Returns the names of the plugins' scheduling profiles, None where nobody knows.
    """

    def __init__(self, settings: FleetSettings, clock: Clock, *, ages: bool = True) -> None:
        self._settings = settings
        self._ages = ages
        self._clock = clock
        self.qualifiers: QualifierSource = Unqualified()
        self.profiles: Callable[[], Collection[str] | None] = _nobody_knows
        self._load = LoadState()
        self._members: Mapping[ObjectKey, Member] = {}
        self._seen: dict[ObjectKey, Seen] = {}
        self.fleet: Fleet = EMPTY_FLEET

    def apply_slices(self, load: LoadState) -> Generator[None, None, None]:
        """Put the objects of *load* in the place of all earlier ones, in slices."""
        members = yield from members_slices(load, self._settings)
        fleet = yield from fleet_of_slices(load, members, self._settings)
        now_ns = self._clock.now_ns()
        seen: dict[ObjectKey, Seen] = {}
        for count, shown in enumerate(self._shown(load, fleet, members), start=1):
            seen[shown.key] = shown.seen(self._seen.get(shown.key), now_ns)
            if not count % _SLICE_OBJECTS:
                yield
        yield
        self._load, self._members, self._seen = load, members, seen
        self.fleet = fleet

    def manifests_slices(self) -> Generator[None, None, Manifest]:
        """Return every object with its status as a ``List``, giving way between slices.

        Complexity: O(n) in objects, endpoints and members of pools.
        """
        remembered, now_ns = self._seen, self._clock.now_ns()
        items: list[Manifest] = []
        for count, shown in enumerate(self._shown(self._load, self.fleet, self._members), start=1):
            remembered[shown.key] = shown.seen(remembered[shown.key], now_ns)
            items.append(shown.manifest(remembered[shown.key], ages=self._ages))
            if not count % _SLICE_OBJECTS:
                yield
        return {"apiVersion": "v1", "kind": "List", "items": items}

    def _shown(
        self, load: LoadState, fleet: Fleet, members: Mapping[ObjectKey, Member]
    ) -> Iterator[Shown]:
        """Yield what is to be shown of each object."""
        profiles = self.profiles()
        for kind in SHOWN_KINDS:
            for found in kind.objects_in(load):
                member = members.get(found.key)
                said = () if member is None else self.qualifiers.qualifiers_of(member)
                yield Shown(
                    kind=kind,
                    found=found,
                    state=state_by_profiles(load.states[found.key], found.spec, profiles),
                    qualifiers=frozenset(said),
                    counts=counts_of(found.key, fleet, member),
                )


def _nobody_knows() -> None:
    """Know no profiles."""
