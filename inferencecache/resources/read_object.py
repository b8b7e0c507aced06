"""From one document to the objects in it, or to what is wrong with them.

Rules of this file: whatever the document, the answer says which object it is about, if that can be
told at all, because what is wrong leaves that object as it was. Several flaws of one object are
all told, up to a limit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, cast

import msgspec

from inferencecache.resources.documents import Document
from inferencecache.resources.endpoint_picker_config import is_endpoint_picker_config
from inferencecache.resources.endpoints_file import endpoints_document, is_endpoints_file
from inferencecache.resources.explain import flaws_of
from inferencecache.resources.flaw import UNKNOWN_KEY, Flaw, joined, shown
from inferencecache.resources.kind import KindRegistry, ResourceKind, ResourceScope, SpecT
from inferencecache.resources.metadata import DEFAULT_NAMESPACE, ObjectMeta
from inferencecache.resources.model import ObjectKey, Place, ResourceError, ResourceObject
from inferencecache.resources.schema import schema_of

_FLAWS_MAX: Final = 20
_OBJECT_KEYS: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_LIST_KEYS: Final = ("apiVersion", "kind", "metadata", "items")
_LIST: Final = "List"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a document, or one item of a list, says.

    Attributes:
        key: The object it is about, None if that cannot be told.
        found: The object, None if anything is wrong with it.
        errors: What is wrong.
    """

    key: ObjectKey | None
    found: ResourceObject[Any] | None = None
    errors: tuple[ResourceError, ...] = ()


def read_document(document: Document, file: str, kinds: KindRegistry) -> Iterator[Reading]:
    """Yield what *document* says: one reading, or one for each item of a list.

    An EndpointPickerConfig is no object, and says nothing here.

    Args:
        document: Not empty.
        file: Where it stands.
        kinds: The kinds that are known.
    """
    place = Place(file, document.number, 0, document.line)
    value = document.value
    if is_endpoints_file(file):
        yield _read(endpoints_document(file, value), place, kinds, _in_endpoints(document.flaws))
        return
    if not isinstance(value, dict):
        yield _unknown(place, "", [_flaw("", value, "an object with apiVersion and kind")])
        return
    if is_endpoint_picker_config(value):
        return
    items = _items_of(value, kinds)
    if items is None:
        yield _read(value, place, kinds, document.flaws)
        return
    own = [flaw for flaw in document.flaws if not flaw.field.startswith("items[")]
    flaws = [*own, *_surplus(value, _LIST_KEYS)]
    if flaws:
        yield _unknown(place, "", flaws)
    for number, item in enumerate(items, start=1):
        at = place._replace(item=number, line=0)
        if isinstance(item, dict):
            yield _read(item, at, kinds, _inside(document.flaws, number - 1))
        else:
            yield _unknown(at, "", [_flaw("", item, "an object with apiVersion and kind")])


def _in_endpoints(flaws: Sequence[Flaw]) -> list[Flaw]:
    """Return the *flaws* of a plain list as those of the object that it stands for."""
    return [replace(flaw, field=f"spec.endpoints{flaw.field}") for flaw in flaws]


def _items_of(value: dict[str, object], kinds: KindRegistry) -> list[object] | None:
    """Return the items of a list, of mixed kinds or of one; None for anything else."""
    name, items = value.get("kind"), value.get("items")
    if not isinstance(name, str) or not name.endswith(_LIST) or not isinstance(items, list):
        return None
    kind = kinds.get(name.removesuffix(_LIST))
    expected = kind.api_versions if kind is not None else ("v1",)
    is_list = name == _LIST or kind is not None
    return items if is_list and value.get("apiVersion") in expected else None


def _inside(flaws: Sequence[Flaw], item: int) -> list[Flaw]:
    """Return those of a list's *flaws* that one item has, without the way to it."""
    start = joined("items", item)
    return [
        Flaw(
            field=flaw.field.removeprefix(start).removeprefix("."),
            value=flaw.value,
            allowed=flaw.allowed,
            line=flaw.line,
        )
        for flaw in flaws
        if flaw.field == start or flaw.field.startswith(start + ".")
    ]


def _read(
    value: dict[str, object], place: Place, kinds: KindRegistry, flaws: Sequence[Flaw]
) -> Reading:
    """Return what an object of whatever kind says."""
    name = value.get("kind")
    kind = kinds.get(name) if isinstance(name, str) else None
    if kind is None or kind.is_document == is_endpoints_file(place.file):
        known = sorted(kind.kind for kind in kinds if kind.is_document)
        wrong = _flaw("kind", name, "one of " + ", ".join(known))
        return _unknown(place, "", [*flaws, wrong])
    if value.get("apiVersion") not in kind.api_versions:
        wrong = _flaw("apiVersion", value.get("apiVersion"), " or ".join(kind.api_versions))
        return _unknown(place, kind.kind, [*flaws, wrong])
    key, metadata = _identify(value.get("metadata"), kind)
    spec = _convert(value.get("spec", {}), kind.spec)
    if metadata is not None and spec is not None and not flaws:
        violated = [flaw for rule in kind.rules if (flaw := rule.check(spec)) is not None]
        if not violated and key is not None and value.keys() <= set(_OBJECT_KEYS):
            found = ResourceObject(key=key, metadata=metadata, spec=spec, place=place)
            return Reading(key=key, found=found)
        flaws = violated
    told = [*flaws, *_surplus(value, _OBJECT_KEYS), *_explain(value, kind)]
    return _refused(key, place, kind.kind, told)


def _identify(value: object, kind: ResourceKind[Any]) -> tuple[ObjectKey | None, ObjectMeta | None]:
    """Return key and metadata; the key also if only the rest of the metadata is wrong."""
    metadata = _convert(value, ObjectMeta)
    named = metadata
    if named is None and isinstance(value, dict):
        names = {name: value[name] for name in ("name", "namespace") if name in value}
        named = _convert(names, ObjectMeta)
    if named is None:
        return None, None
    if kind.scope is ResourceScope.CLUSTER:
        is_right = named.namespace is None
        return ObjectKey(kind.kind, "", named.name), metadata if is_right else None
    return ObjectKey(kind.kind, named.namespace or DEFAULT_NAMESPACE, named.name), metadata


def _convert(value: object, model: type[SpecT]) -> SpecT | None:
    """Return *value* as *model*, None if it does not fit."""
    try:
        return msgspec.convert({} if value is None else value, model)
    except (msgspec.ValidationError, RecursionError):
        return None


def _explain(value: dict[str, object], kind: ResourceKind[Any]) -> Iterator[Flaw]:
    """Yield what the schemas have to say about an object."""
    yield from flaws_of(value.get("metadata") or {}, schema_of(ObjectMeta), "metadata")
    metadata = value.get("metadata")
    is_placed = isinstance(metadata, dict) and metadata.get("namespace") is not None
    if is_placed and kind.scope is ResourceScope.CLUSTER:
        namespace = cast("dict[str, object]", metadata)["namespace"]
        yield _flaw("metadata.namespace", namespace, f"nothing: {kind.kind} has no namespace")
    spec = value.get("spec")
    model: type = kind.spec
    yield from flaws_of({} if spec is None else spec, schema_of(model), "spec")


def _surplus(value: dict[str, object], keys: tuple[str, ...]) -> Iterator[Flaw]:
    """Yield the members that an object or list does not have."""
    for name in value.keys() - set(keys):
        allowed = "one of the keys " + ", ".join(keys)
        yield Flaw(field=joined("", name), value=UNKNOWN_KEY, allowed=allowed)


def _flaw(field: str, value: object, allowed: str) -> Flaw:
    return Flaw(field=field, value="nothing" if value is None else shown(value), allowed=allowed)


def _unknown(place: Place, kind: str, flaws: Sequence[Flaw]) -> Reading:
    return _refused(None, place, kind, flaws)


def _refused(key: ObjectKey | None, place: Place, kind: str, flaws: Sequence[Flaw]) -> Reading:
    """Return a reading of what is wrong."""
    return Reading(
        key=key,
        errors=tuple(error_of(flaw, place, kind, key) for flaw in islice(flaws, _FLAWS_MAX)),
    )


def error_of(
    flaw: Flaw, place: Place, kind: str = "", key: ObjectKey | None = None
) -> ResourceError:
    """Return *flaw* with its place and the object it concerns."""
    return ResourceError(
        place=place._replace(line=flaw.line or place.line),
        kind=kind,
        object=str(key) if key is not None else "",
        field=flaw.field,
        value=flaw.value,
        allowed=flaw.allowed,
    )
