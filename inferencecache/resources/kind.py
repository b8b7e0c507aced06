"""What the loader must know of a kind, and the registry of all kinds.

A new kind adds one module with its models, its rules and a :class:`ResourceKind`, and registers
that; reading, errors, schemas and debug pages follow.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from inferencecache.resources.flaw import Flaw
from inferencecache.resources.model import LoadState, ObjectKey, ObjectState, ResourceObject

GROUP: Final = "inferencecache.io"

SpecT = TypeVar("SpecT", bound=msgspec.Struct)


class ResourceScope(StrEnum):
    """Whether objects of a kind live in a namespace."""

    NAMESPACED = "Namespaced"
    CLUSTER = "Cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of ``kubectl get``.

    Attributes:
        name: Its heading.
        type: ``string``, ``integer`` or ``date``.
        path: JSONPath of what it shows, from the object, starting with a dot.
        description: One sentence for people.
        is_wide: Whether it is shown only with ``-o wide``.
    """

    name: str
    type: str
    path: str
    description: str = ""
    is_wide: bool = False


AGE: Final = Column(name="Age", type="date", path=".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule(Generic[SpecT]):
    """What no schema can say about a spec; checked here and, as CEL, in a cluster.

    Attributes:
        path: The value that *cel* is about, a dotted path that starts with ``spec``.
        cel: The condition that must hold; ``self`` is the value. Empty if the schema says it
            already, or if a cluster cannot check it.
        message: What is wrong when it does not.
        check: Returns what is wrong with a spec whose schema is right, or None.
    """

    path: str
    cel: str
    message: str
    check: Callable[[SpecT], Flaw | None]


Assess = Callable[
    [Sequence[ResourceObject[SpecT]], LoadState], Iterable[tuple[ObjectKey, ObjectState] | None]
]
"""Names the state of each object of a kind, given in order, where it is not simply active.

Yields None now and then as a pause, so that many objects hold nobody up.

The load state holds the objects of all kinds, for references; its own states are not known yet.
"""


def all_active(
    _objects: Sequence[ResourceObject[SpecT]], _load: LoadState
) -> Iterable[tuple[ObjectKey, ObjectState] | None]:
    """Say nothing, for kinds whose objects have no states."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind(Generic[SpecT]):
    """One kind.

    Attributes:
        kind: Its name in documents.
        plural: Its name in paths and in the name of its CRD.
        short_names: What people may type for it.
        description: One sentence for people.
        spec: Model of the spec; refuses unknown members.
        status: Model of the status, for the CRD; files' statuses are ignored.
        scope: Whether its objects live in a namespace.
        columns: What ``kubectl get`` shows.
        rules: What the models cannot say.
        assess: Names the states of its objects.
        group: Its API group.
        version: Its version.
        other_api_versions: Under which its documents are accepted, too.
        admission: By the path of a value, ``spec.models[]`` for example, what the schemas for
            clusters and editors say of it, though the loader accepts more and gives a state.
        is_foreign: Whether it belongs to somebody else, who has its CRD.
        is_document: Whether a document may name it; if not, whole files stand for its objects.
    """

    kind: str
    plural: str
    short_names: tuple[str, ...]
    description: str
    spec: type[SpecT]
    status: type[msgspec.Struct]
    scope: ResourceScope = ResourceScope.NAMESPACED
    columns: tuple[Column, ...] = (AGE,)
    rules: tuple[Rule[SpecT], ...] = ()
    assess: Assess[SpecT] = all_active
    group: str = GROUP
    version: str = "v1alpha1"
    other_api_versions: tuple[str, ...] = ()
    admission: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    is_foreign: bool = False
    is_document: bool = True

    @property
    def api_version(self) -> str:
        """What its documents give as ``apiVersion``, if they are ours."""
        return f"{self.group}/{self.version}"

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Everything that its documents may give as ``apiVersion``."""
        return (self.api_version, *self.other_api_versions)

    @property
    def needs_spec(self) -> bool:
        """Whether an object without a spec is wrong."""
        return any(field.required for field in msgspec.structs.fields(self.spec))

    def objects_in(self, load: LoadState) -> list[ResourceObject[SpecT]]:
        """Return the objects of this kind, sorted by namespace and name.

        Complexity: O(n) in the objects of all kinds.
        """
        return cast("list[ResourceObject[SpecT]]", list(load.of_kind(self.kind)))


class KindRegistry:
    """The kinds that a loader knows.

    Args:
        kinds: Each name once.

    Raises:
        ValueError: Two kinds have the same name or plural.
    """

    __slots__ = ("_by_kind",)

    def __init__(self, kinds: Iterable[ResourceKind[Any]] = ()) -> None:
        self._by_kind: dict[str, ResourceKind[Any]] = {}
        for kind in kinds:
            self.register(kind)

    def register(self, kind: ResourceKind[Any]) -> None:
        """Add a kind.

        Raises:
            ValueError: Its name, or its plural, is taken.
        """
        for known in self._by_kind.values():
            if kind.kind == known.kind or kind.plural == known.plural:
                raise ValueError(f"{kind.kind} is registered already")
        self._by_kind[kind.kind] = kind

    def __iter__(self) -> Iterator[ResourceKind[Any]]:
        """Yield the kinds in the order in which they were registered."""
        return iter(self._by_kind.values())

    def get(self, kind: str) -> ResourceKind[Any] | None:
        """Return a kind by its name, None if there is none."""
        return self._by_kind.get(kind)

    @property
    def names(self) -> list[str]:
        """The names of the kinds, sorted."""
        return sorted(self._by_kind)
