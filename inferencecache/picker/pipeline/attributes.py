"""What plugins tell each other about a request and about endpoints: values under typed keys.

Rules of this file: a key has one type everywhere; readers cannot write; whoever writes is known,
so that what one plugin says can be told from what another one says.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class AttributeKey(Generic[ValueT]):
    """The name and the type of something that plugins know.

    Attributes:
        name: Unique; third parties put their own name in front: ``example.com/weather``.
        kind: The class of its values.
    """

    name: str
    kind: type[ValueT]


class Attributes:
    """Values by key, to be read.

    A value belongs to one request; nobody changes it.

    Args:
        values: By the names of their keys.
    """

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, object] | None = None) -> None:
        self._values: dict[str, object] = {} if values is None else values

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: AttributeKey[Any]) -> bool:
        return key.name in self._values

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the keys that have a value."""
        return iter(self._values)

    def get(self, key: AttributeKey[ValueT]) -> ValueT | None:
        """Return the value of *key*, None if there is none."""
        value = self._values.get(key.name)
        return value if value is not None and isinstance(value, key.kind) else None

    def joined(self, values: dict[str, object]) -> "Attributes":
        """Return a copy with *values* besides; whoever gave them may change them without effect."""
        return Attributes({**self._values, **values})


class WritableAttributes(Attributes):
    """Values by key, to be written by the director, and by plugins as long as it lets them."""

    __slots__ = ("_entries_max", "is_closed")

    def __init__(self, entries_max: int) -> None:
        super().__init__()
        self._entries_max = entries_max
        self.is_closed = False

    def put(self, key: AttributeKey[ValueT], value: ValueT) -> None:
        """Say something.

        Raises:
            AttributeError: Nobody may write any more, or there are too many values.
            TypeError: *value* has another type than its key.
        """
        if self.is_closed:
            raise AttributeError(f"{key.name}: nobody may write at this step")
        if not isinstance(value, key.kind):
            raise TypeError(f"{key.name}: {type(value).__name__}, not {key.kind.__name__}")
        if len(self._values) >= self._entries_max and key not in self:
            raise AttributeError(f"{key.name}: more than {self._entries_max} attributes")
        self._values[key.name] = value

    def commit(self, values: Mapping[str, object]) -> None:
        """Say what the director has checked already; for it alone."""
        self._values.update(values)


NOTHING_KNOWN: Final = Attributes()
"""Of whatever nobody has said anything about."""
