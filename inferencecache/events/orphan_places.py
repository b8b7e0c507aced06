"""Waiting stores by a place they name, oldest first."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

_Name = TypeVar("_Name")
_Store = TypeVar("_Store")


class Place(NamedTuple):
    """An engine hash within a rank's name space."""

    group_idx: int
    engine_hash: int


class Copy(NamedTuple):
    """The copy of a block in one medium."""

    group_idx: int
    engine_hash: int
    lane: int


class OrphanPlaces(Generic[_Name, _Store]):
    """Which stores name a place; nearly always one, which is then kept without a table around it.

    Complexity:
        Every call is constant per store it concerns, however many name the same place.
    """

    def __init__(self) -> None:
        self._lone: dict[_Name, _Store] = {}
        self._many: dict[_Name, OrderedDict[_Store, None]] = {}

    def add(self, place: _Name, store: _Store) -> None:
        """Note that *store* names *place*; it is the youngest that does."""
        many = self._many.get(place)
        if many is not None:
            many[store] = None
        elif place not in self._lone:
            self._lone[place] = store
        else:
            self._many[place] = OrderedDict.fromkeys((self._lone.pop(place), store))

    def pop_oldest(self, place: _Name) -> _Store | None:
        """Forget that the oldest store names *place* and return it, None if there is none."""
        many = self._many.get(place)
        if many is None:
            return self._lone.pop(place, None)
        store, _ = many.popitem(last=False)
        self._drop_empty(place, many)
        return store

    def discard(self, place: _Name, store: _Store) -> None:
        """Forget that *store* names *place*, if that is still known."""
        many = self._many.get(place)
        if many is not None:
            many.pop(store, None)
            self._drop_empty(place, many)
        elif self._lone.get(place) is store:
            del self._lone[place]

    def parts(self) -> Iterator[dict[Any, Any]]:
        """Yield the dictionaries it is made of; for one that is not used any more."""
        yield self._lone
        yield from self._many.values()
        yield self._many

    def _drop_empty(self, place: _Name, many: OrderedDict[_Store, None]) -> None:
        if not many:
            del self._many[place]
