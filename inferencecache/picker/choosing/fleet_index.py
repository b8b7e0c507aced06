"""From a model's name to the places that serve it, for one fleet.

Rules of this file: within a member one row answers to a name, its own name before an adapter's
before an alias; across the members of a pool everything that answers is a candidate at once. A
place stands once under a name, in the first tier that has it.

Theory of operation: made once per fleet, in slices, so that a Pick costs what its own model has.
Places of one row are shared by all names and pools that lead to it.
"""

from collections.abc import Generator, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from inferencecache.picker.destination import LocalDestination, ProviderDestination
from inferencecache.picker.fleet import (
    Candidate,
    EndpointRole,
    Fleet,
    Member,
    ModelRow,
    ObjectName,
    Pool,
    Provider,
    Tier,
)

_SLICE_CANDIDATES: Final = 500


class RowCandidates(NamedTuple):
    """The places of one member that serve one of its models; whatever holds of one holds of all.

    Attributes:
        row: What they serve.
        is_provider: Whether they are outside of the cluster.
        candidates: One or more.
    """

    row: ModelRow
    is_provider: bool
    candidates: tuple[Candidate, ...]


class TierMatch(NamedTuple):
    """What a tier has for a model.

    Attributes:
        tier: Which tier.
        rows: By member, in the tier's order; at least one.
    """

    tier: Tier
    rows: tuple[RowCandidates, ...]


class PoolIndex:
    """What one pool serves.

    Args:
        pool: Which pool.
        by_model: Its tiers by model.

    Attributes:
        pool: As given.
    """

    __slots__ = ("_by_model", "pool")

    def __init__(self, pool: Pool, by_model: Mapping[str, tuple[TierMatch, ...]]) -> None:
        self.pool = pool
        self._by_model = by_model

    def matches(self, model: str) -> tuple[TierMatch, ...]:
        """Return the tiers that serve *model*, in the pool's order."""
        return self._by_model.get(model, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetIndex:
    """A fleet, and who serves what.

    Attributes:
        fleet: As loaded.
        everything: What a Pick without a pool can have.
        pools: By namespace and name.
        may_lack_model: Whether anything could stand in for a model that a body does not name.
        names: Of all candidates.
    """

    fleet: Fleet
    everything: PoolIndex
    pools: Mapping[ObjectName, PoolIndex]
    may_lack_model: bool
    names: AbstractSet[str]


def fleet_index(fleet: Fleet) -> FleetIndex:
    """Return the index of *fleet*, made at once."""
    slices = fleet_index_slices(fleet)
    while True:
        try:
            next(slices)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return] # what a generator returns is untyped


def fleet_index_slices(fleet: Fleet) -> Generator[None, None, FleetIndex]:
    """Return the index of *fleet*, giving way between bounded slices.

    Complexity: O(names in pools + endpoints x models).
    """
    places = _Places()
    everything = yield from _pool_slices(fleet.everything, places)
    pools: dict[ObjectName, PoolIndex] = {}
    for key, pool in fleet.pools.items():
        pools[key] = yield from _pool_slices(pool, places)
    has_default = any(pool.default_model for pool in (fleet.everything, *fleet.pools.values()))
    rules = (rule for rewrite in fleet.rewrites for rule in rewrite.rules)
    return FleetIndex(
        fleet=fleet,
        everything=everything,
        pools=pools,
        may_lack_model=has_default or any(rule.models is None for rule in rules),
        names=places.names,
    )


class _Places:
    """The candidates of each row, made once however many names and pools lead to it.

    Attributes:
        names: Of all candidates.
    """

    def __init__(self) -> None:
        self._by_row: dict[tuple[bool, ObjectName, str], tuple[Candidate, ...]] = {}
        self.names: set[str] = set()

    def slices(self, member: Member, row: ModelRow) -> Generator[None, None, tuple[Candidate, ...]]:
        """Return the candidates that serve *row*, giving way between bounded slices."""
        key = (isinstance(member, Provider), member.key, row.name)
        if key not in self._by_row:
            made: list[Candidate] = []
            for candidate in _candidates(member, row):
                made.append(candidate)
                self.names.add(candidate.name)
                if not len(made) % _SLICE_CANDIDATES:
                    yield
            self._by_row[key] = tuple(made)
        return self._by_row[key]


def _pool_slices(pool: Pool, places: _Places) -> Generator[None, None, PoolIndex]:
    by_model: dict[str, dict[int, list[RowCandidates]]] = {}
    seen: dict[str, set[str]] = {}
    done = 0
    for number, member, name, row in _names(pool):
        candidates = yield from places.slices(member, row)
        done += len(candidates)
        fresh = _fresh(candidates, seen.setdefault(name, set()))
        if fresh:
            rows = by_model.setdefault(name, {}).setdefault(number, [])
            rows.append(RowCandidates(row, isinstance(member, Provider), fresh))
        if done >= _SLICE_CANDIDATES:
            done = 0
            yield
    tiers = pool.tiers
    return PoolIndex(
        pool,
        {
            name: tuple(TierMatch(tiers[number], tuple(rows)) for number, rows in found.items())
            for name, found in by_model.items()
        },
    )


def _names(pool: Pool) -> Iterator[tuple[int, Member, str, ModelRow]]:
    """Yield every name by which a member of *pool* is reached, with the number of its tier."""
    for number, tier in enumerate(pool.tiers):
        for member in tier.members:
            for name, row in _rows(member).items():
                yield number, member, name, row


def _rows(member: Member) -> dict[str, ModelRow]:
    """Return the row that answers to each name of *member*."""
    rows = {alias: row for row in reversed(member.models) for alias in row.aliases}
    rows.update({row.name: row for row in member.models if row.adapter_of})
    rows.update({row.name: row for row in member.models if not row.adapter_of})
    return rows


def _candidates(member: Member, row: ModelRow) -> Iterator[Candidate]:
    if isinstance(member, Provider):
        backend = member.backend
        destination = ProviderDestination(
            namespace=backend.namespace, backend=backend.name, path=member.path
        )
        yield Candidate(member=member, endpoint=None, model=row, destination=destination)
        return
    for endpoint in member.endpoints:
        if endpoint.role is not EndpointRole.PREFILL:
            local = LocalDestination(endpoint=endpoint.address)
            yield Candidate(member=member, endpoint=endpoint, model=row, destination=local)


def _fresh(candidates: tuple[Candidate, ...], seen: set[str]) -> tuple[Candidate, ...]:
    """Return those of *candidates* whose place was not *seen*, and note them."""
    fresh = tuple(candidate for candidate in candidates if candidate.name not in seen)
    seen.update(candidate.name for candidate in fresh)
    return candidates if len(fresh) == len(candidates) else fresh
