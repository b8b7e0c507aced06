"""What the loader takes, keeps and gives back: values, no behaviour."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from inferencecache.resources.metadata import ObjectMeta

SpecT_co = TypeVar("SpecT_co", covariant=True)


class ObjectKey(NamedTuple):
    """Which object; sorting goes by kind, namespace and name.

    Attributes:
        kind: Its kind, ``CachePolicy`` for example.
        namespace: Its namespace, empty for objects of the whole cluster.
        name: Its name.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Return the object as people name it."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {where}"


class Place(NamedTuple):
    """Where an object stands.

    Attributes:
        file: Name of the file.
        document: Number of the document in it, from 1; 0 for the file as a whole.
        item: Number in a document that is a list, from 1; 0 elsewhere.
        line: Line where the document starts, from 1; 0 where it is not known.
    """

    file: str
    document: int = 0
    item: int = 0
    line: int = 0

    def __str__(self) -> str:
        """Return the place as people name it."""
        item = f", item {self.item}" if self.item else ""
        return f"{self.file}, document {self.document}{item}" if self.document else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """A file as found.

    Attributes:
        name: Its name, unique in the directory.
        content: What is in it; empty if it could not be read.
        problem: Why it could not be read, empty if it could.
    """

    name: str
    content: bytes
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceError:
    """One thing that is wrong with the files; whatever it concerns stays as it was.

    Attributes:
        place: Where.
        kind: Kind of the object, empty when nobody can tell.
        object: The object as people name it, empty when nobody can tell.
        field: Dotted path in the object, empty for all of it.
        value: What was found.
        allowed: What would have been accepted.
    """

    place: Place
    kind: str
    object: str
    field: str
    value: str
    allowed: str

    def __str__(self) -> str:
        """Return the whole error as one line."""
        subject = ", ".join(filter(None, (str(self.place), self.object, self.field)))
        return f"{subject}: found {self.value}, expected {self.allowed}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceObject(Generic[SpecT_co]):
    """An object that was accepted.

    Attributes:
        key: Which object.
        metadata: Its metadata.
        spec: What it asks for, as its kind's model.
        place: Where it stands.
    """

    key: ObjectKey
    metadata: ObjectMeta
    spec: SpecT_co
    place: Place


class StateName(StrEnum):
    """States that kinds share; a kind may have others."""

    ACTIVE = "Active"
    SHADOWED = "Shadowed"


class ObjectState(NamedTuple):
    """What became of an accepted object.

    Attributes:
        name: One word; also a metric label.
        reason: Why, one word, empty for the normal state.
        message: Why, one sentence, empty for the normal state.
    """

    name: str = StateName.ACTIVE
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """What one file says.

    Attributes:
        source: The file.
        documents: How many documents it has that are not empty.
        accepted: Its objects that are right.
        refused: Its objects that are wrong, with their places.
        errors: What is wrong, shortened if there is very much.
        errors_by_kind: How much is wrong, by kind, empty for unknown kinds.
        is_complete: Whether every document could be told to be about some object.
    """

    source: SourceFile
    documents: int = 0
    accepted: tuple[ResourceObject[object], ...] = ()
    refused: tuple[tuple[ObjectKey, Place], ...] = ()
    errors: tuple[ResourceError, ...] = ()
    errors_by_kind: Mapping[str, int] = field(default_factory=dict)
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadState:
    """All objects in force at one moment, and what is wrong with the files.

    Attributes:
        readings: What each file says, by name.
        objects: The objects in force, sorted by key.
        states: What became of them.
        held: Those in force only because what the files say now is wrong.
        errors: What is wrong, shortened if there is very much.
        errors_by_kind: How much is wrong, by kind, empty for unknown kinds.
    """

    readings: Mapping[str, FileReading] = field(default_factory=dict)
    objects: Mapping[ObjectKey, ResourceObject[object]] = field(default_factory=dict)
    states: Mapping[ObjectKey, ObjectState] = field(default_factory=dict)
    held: frozenset[ObjectKey] = frozenset()
    errors: tuple[ResourceError, ...] = ()
    errors_by_kind: Mapping[str, int] = field(default_factory=dict)

    def of_kind(self, kind: str) -> Iterator[ResourceObject[object]]:
        """Yield the objects of one kind, sorted by namespace and name."""
        for key, found in self.objects.items():
            if key.kind == kind:
                yield found
