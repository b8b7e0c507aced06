"""From files to the objects in force.

Rules of this file
    1. Pure: the files as found and the state before give the state after.
    2. What is wrong changes nothing that it concerns; what is right always counts.
       - An object with an error, or one that stands in two places, stays as it was; if it was not
         there, it is not there.
       - A file that is no YAML gives nothing, and takes nothing away: not even what stands above
         the mistake counts, since the file may still be being written.
       - A document that cannot be told to be about some object (no name, an unknown kind) might be
         any of those that are missing from its file now, so they stay.
    3. What is gone from the files is gone. Only an object that rule 2 protects is *held*.

Theory of operation: a file is read anew only if its bytes have changed; then the claims of all
files are laid side by side, which finds objects that stand in two places. All of it gives way
between bounded slices, as reading ten thousand objects takes a second or two.
"""

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice

from inferencecache.resources.documents import UnreadableFileError, parse_documents
from inferencecache.resources.flaw import Flaw
from inferencecache.resources.kind import KindRegistry
from inferencecache.resources.model import (
    FileReading,
    LoadState,
    ObjectKey,
    ObjectState,
    Place,
    ResourceError,
    ResourceObject,
    SourceFile,
)
from inferencecache.resources.read_object import error_of, read_document
from inferencecache.resources.settle import (
    SLICE_OBJECTS,
    claims_of,
    duplicates_among,
    settle,
)
from inferencecache.settings.resources import ResourceSettings

_ACTIVE = ObjectState()
_SLICE_BYTES = 2_048

Steps = Generator[None, None, LoadState]


class ResourceLoader:
    """Reads the files of a directory again and again.

    Args:
        kinds: The kinds that are known.
        settings: What is too much.
    """

    __slots__ = ("_kinds", "_settings")

    def __init__(self, kinds: KindRegistry, settings: ResourceSettings) -> None:
        self._kinds = kinds
        self._settings = settings

    def load(self, files: Sequence[SourceFile], before: LoadState) -> LoadState:
        """Return the state after *files* were found; see :meth:`load_slices`."""
        steps = self.load_slices(files, before)
        while True:
            try:
                next(steps)
            except StopIteration as finished:
                state: LoadState = finished.value
                return state

    def load_slices(self, files: Sequence[SourceFile], before: LoadState) -> Steps:
        """Return the state after *files* were found, giving way between bounded slices.

        Args:
            files: Every file, each name once.
            before: The state so far; ``LoadState()`` at first.

        Complexity: O(bytes of changed files + n log n in all objects).
        """
        readings: dict[str, FileReading] = {}
        unpaused_bytes = 0
        for source in sorted(files, key=lambda source: source.name):
            known = before.readings.get(source.name)
            if known is not None and known.source == source:
                readings[source.name] = known
            else:
                readings[source.name] = yield from self._read_file(source)
                unpaused_bytes += len(source.content)
            if unpaused_bytes > _SLICE_BYTES:
                unpaused_bytes = 0
                yield
        claims = yield from claims_of(readings.values())
        duplicates = list(duplicates_among(claims))
        objects, held = yield from settle(readings, claims, before.objects)
        wrong = [reading for reading in readings.values() if reading.errors]
        errors = chain(*(reading.errors for reading in wrong), duplicates)
        by_kind = Counter(error.kind for error in duplicates)
        for reading in wrong:
            by_kind.update(reading.errors_by_kind)
        after = LoadState(
            readings=readings,
            objects=objects,
            held=held,
            errors=tuple(islice(errors, self._settings.errors_max)),
            errors_by_kind=by_kind,
        )
        return replace(after, states=(yield from self._assess(after)))

    def _read_file(self, source: SourceFile) -> Generator[None, None, FileReading]:
        """Return what a file says."""
        if source.problem:
            return _unreadable(
                source, Flaw(field="", value=source.problem, allowed="a readable file")
            )
        try:
            reading = yield from self._read_documents(source)
        except UnreadableFileError as error:
            return _unreadable(source, error.flaw)
        return reading

    def _read_documents(self, source: SourceFile) -> Generator[None, None, FileReading]:
        """Return what a file says that is YAML all through."""
        accepted: list[ResourceObject[object]] = []
        refused: list[tuple[ObjectKey, Place]] = []
        errors: list[ResourceError] = []
        by_kind: Counter[str] = Counter()
        documents, is_complete = 0, True
        for document in parse_documents(source.content, self._settings):
            if document is None:
                yield
                continue
            documents += 1
            for count, reading in enumerate(read_document(document, source.name, self._kinds)):
                if count % SLICE_OBJECTS == SLICE_OBJECTS - 1:
                    yield
                if reading.found is not None:
                    accepted.append(reading.found)
                    continue
                by_kind.update(error.kind for error in reading.errors)
                errors.extend(reading.errors[: self._settings.errors_max - len(errors)])
                if reading.key is None:
                    is_complete = False
                else:
                    refused.append((reading.key, reading.errors[0].place))
        return FileReading(
            source=source,
            documents=documents,
            accepted=tuple(accepted),
            refused=tuple(refused),
            errors=tuple(errors),
            errors_by_kind=by_kind,
            is_complete=is_complete,
        )

    def _assess(self, load: LoadState) -> Generator[None, None, Mapping[ObjectKey, ObjectState]]:
        """Return the state of every object."""
        states = dict.fromkeys(load.objects, _ACTIVE)
        yield
        for kind in self._kinds:
            found = kind.objects_in(load)
            yield
            for count, named in enumerate(kind.assess(found, load)):
                if named is not None:
                    states[named[0]] = named[1]
                if named is None or count % SLICE_OBJECTS == SLICE_OBJECTS - 1:
                    yield
        return states


def _unreadable(source: SourceFile, flaw: Flaw) -> FileReading:
    """Return the reading of a file of which nothing counts."""
    return FileReading(
        source=source,
        errors=(error_of(flaw, Place(source.name)),),
        errors_by_kind={"": 1},
        is_complete=False,
    )
