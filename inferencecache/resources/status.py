"""The loader's state for people: what is in force, and what is wrong; every part fits into JSON."""

from collections import Counter
from dataclasses import dataclass
from itertools import islice

from inferencecache.resources.model import LoadState, ObjectKey, ResourceError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStatus:
    """One file.

    Attributes:
        name: Its name.
        documents: How many documents it has that are not empty.
        objects: How many of its objects are right.
        errors: How much is wrong with it, objects that stand elsewhere too left aside.
    """

    name: str
    documents: int
    objects: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStatus:
    """One object in force.

    Attributes:
        kind: Its kind.
        namespace: Its namespace, empty for objects of the whole cluster.
        name: Its name.
        state: What became of it, one word.
        reason: Why, one word, empty for the normal state.
        message: Why, one sentence, empty for the normal state.
        file: Where it was read.
        document: Number of the document there, from 1.
        item: Number in a document that is a list, from 1; 0 elsewhere.
        is_held: Whether it is in force only because what the files say now is wrong.
    """

    kind: str
    namespace: str
    name: str
    state: str
    reason: str
    message: str
    file: str
    document: int
    item: int
    is_held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStatus:
    """One thing that is wrong.

    Attributes:
        file: Where.
        document: Number of the document there, from 1; 0 for the file as a whole.
        item: Number in a document that is a list, from 1; 0 elsewhere.
        line: Line in the file, from 1; 0 where it is not known.
        object: The object as people name it, empty when nobody can tell.
        field: Dotted path in the object, empty for all of it.
        value: What was found.
        allowed: What would have been accepted.
    """

    file: str
    document: int
    item: int
    line: int
    object: str
    field: str
    value: str
    allowed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryStatus:
    """How reading the directory goes.

    Attributes:
        directory: Its path, empty if there is none to read.
        problem: Why it could not be read last time, empty if it could.
        is_watched: Whether the system tells of changes; if not, only rescans find them.
        loaded_at: When the files last changed what is in force, RFC 3339.
        revision: How often they have.
    """

    directory: str = ""
    problem: str = ""
    is_watched: bool = False
    loaded_at: str = ""
    revision: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """What ``/debug/resources`` shows.

    Attributes:
        source: How reading the directory goes.
        files_total: How many files there are.
        files: The first of them, by name.
        objects_by_kind: How many objects are in force, by kind and state.
        objects_held: How many are in force only because what the files say now is wrong.
        objects_total: How many are in force.
        objects: The first of them, by kind, namespace and name.
        errors_total: How much is wrong.
        errors: The first of it, by file and document.
    """

    source: DirectoryStatus
    files_total: int
    files: tuple[FileStatus, ...]
    objects_by_kind: dict[str, dict[str, int]]
    objects_held: int
    objects_total: int
    objects: tuple[ObjectStatus, ...]
    errors_total: int
    errors: tuple[ErrorStatus, ...]


def status_of(load: LoadState, source: DirectoryStatus, shown_max: int) -> ResourceStatus:
    """Return *load* for people.

    Args:
        load: The state of the loader.
        source: How reading the directory goes.
        shown_max: Most files and most objects that are listed.

    Complexity: O(n) in objects, with very little for each that is not listed.
    """
    return ResourceStatus(
        source=source,
        files_total=len(load.readings),
        files=tuple(
            FileStatus(
                name=name,
                documents=reading.documents,
                objects=len(reading.accepted),
                errors=sum(reading.errors_by_kind.values()),
            )
            for name, reading in islice(load.readings.items(), shown_max)
        ),
        objects_by_kind=objects_by_kind(load),
        objects_held=len(load.held),
        objects_total=len(load.objects),
        objects=tuple(_object(load, key) for key in islice(load.objects, shown_max)),
        errors_total=sum(load.errors_by_kind.values()),
        errors=tuple(map(_error, load.errors)),
    )


def objects_by_kind(load: LoadState) -> dict[str, dict[str, int]]:
    """Return how many objects are in force, by kind and state.

    Complexity: O(n) in objects.
    """
    counts: dict[str, dict[str, int]] = {}
    pairs = Counter((key.kind, state.name) for key, state in load.states.items())
    for (kind, state), count in sorted(pairs.items()):
        counts.setdefault(kind, {})[state] = count
    return counts


def _object(load: LoadState, key: ObjectKey) -> ObjectStatus:
    place, state = load.objects[key].place, load.states[key]
    return ObjectStatus(
        kind=key.kind,
        namespace=key.namespace,
        name=key.name,
        state=state.name,
        reason=state.reason,
        message=state.message,
        file=place.file,
        document=place.document,
        item=place.item,
        is_held=key in load.held,
    )


def _error(error: ResourceError) -> ErrorStatus:
    return ErrorStatus(
        file=error.place.file,
        document=error.place.document,
        item=error.place.item,
        line=error.place.line,
        object=error.object,
        field=error.field,
        value=error.value,
        allowed=error.allowed,
    )
