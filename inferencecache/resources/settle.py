"""Lay what all files say side by side, and decide which objects are in force."""

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import chain

from inferencecache.resources.model import (
    FileReading,
    ObjectKey,
    Place,
    ResourceError,
    ResourceObject,
)

SLICE_OBJECTS = 250
"""How many objects are handled between two pauses."""

Objects = Mapping[ObjectKey, ResourceObject[object]]


class Claim:
    """Where an object is said to be.

    Attributes:
        found: The object as said first, None if it was wrong there.
        places: Every place, in the order of files and documents; most objects have one.
    """

    __slots__ = ("found", "places")

    def __init__(self, found: ResourceObject[object] | None, place: Place) -> None:
        self.found = found
        self.places = [place]


def claims_of(
    readings: Iterable[FileReading],
) -> Generator[None, None, dict[ObjectKey, Claim]]:
    """Return each object that any file names, giving way between slices.

    Args:
        readings: In the order of their files.

    Complexity: O(n) in objects.
    """
    claims: dict[ObjectKey, Claim] = {}
    said = chain.from_iterable(map(_said, readings))
    for count, (key, found, place) in enumerate(said, start=1):
        claim = claims.get(key)
        if claim is None:
            claims[key] = Claim(found, place)
        else:
            claim.places.append(place)
        if not count % SLICE_OBJECTS:
            yield
    return claims


def _said(
    reading: FileReading,
) -> Iterator[tuple[ObjectKey, ResourceObject[object] | None, Place]]:
    for found in reading.accepted:
        yield found.key, found, found.place
    for key, place in reading.refused:
        yield key, None, place


def duplicates_among(claims: Mapping[ObjectKey, Claim]) -> Iterator[ResourceError]:
    """Yield one error for each place but the first in which an object stands."""
    for key, claim in claims.items():
        for place in claim.places[1:]:
            yield ResourceError(
                place=place,
                kind=key.kind,
                object=str(key),
                field="metadata.name",
                value=f"a second {key}",
                allowed=f"each object once; it also stands in {claim.places[0]}",
            )


def settle(
    readings: Mapping[str, FileReading], claims: Mapping[ObjectKey, Claim], before: Objects
) -> Generator[None, None, tuple[Objects, frozenset[ObjectKey]]]:
    """Return the objects in force, sorted, and which of them are held.

    Args:
        readings: What each file says, by name.
        claims: The same by object.
        before: The objects that have been in force so far.

    Complexity: O(n log n) in objects.
    """
    objects: dict[ObjectKey, ResourceObject[object]] = {}
    held: set[ObjectKey] = set()
    for count, (key, claim) in enumerate(claims.items(), start=1):
        if claim.found is not None and len(claim.places) == 1:
            objects[key] = claim.found
        elif key in before:
            held.add(key)
        if not count % SLICE_OBJECTS:
            yield
    incomplete = {name for name, reading in readings.items() if not reading.is_complete}
    if incomplete:
        held.update(
            key
            for key, found in before.items()
            if found.place.file in incomplete and key not in claims
        )
    for key in held:
        objects[key] = before[key]
    yield
    ordered = sorted(objects)
    yield
    return {key: objects[key] for key in ordered}, frozenset(held)
