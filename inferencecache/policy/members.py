"""Strict reading of one JSON object's members.

Rules of this file: every member is read at most once and what nobody reads is refused; null means
absent; a boolean is not a number; an integer is written without a point or an exponent; a number
fits its wire type or is refused. Nothing is guessed.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from inferencecache.policy.model import FLOAT32_MAX, to_float32
from inferencecache.policy.push_error import misplaced, unknown_key
from inferencecache.types import INT32_MAX

_INT32_MIN: Final = -INT32_MAX - 1
_INT64_MAX: Final = 2**63 - 1
_INT64_MIN: Final = -_INT64_MAX - 1

# Half a unit in the last place above the largest float32: from here on rounding gives infinity.
_FLOAT32_OVERFLOW: Final = FLOAT32_MAX + 2.0**103

Element = TypeVar("Element")


class Members:
    """The members of one JSON object, their keys in lower case.

    Args:
        value: The parsed value; null counts as an empty object. Emptied by reading.
        path: Where it stands, for messages; empty for the whole body.

    Raises:
        PolicyPushError: *value* is no object.
    """

    __slots__ = ("_left", "_path")

    def __init__(self, value: object, path: str) -> None:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise misplaced(path or "body", value, "an object")
        self._left: dict[str, object] = value
        self._path = path

    def check_all_read(self) -> None:
        """Refuse what nobody has read.

        Raises:
            PolicyPushError: There is a key that the object does not have.
        """
        for key in self._left:
            raise unknown_key(self._path or "body", key)

    def text(self, key: str) -> str:
        """Return a string, empty when absent."""
        value = self._take(key)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        raise misplaced(self._where(key), value, "a string")

    def flag(self, key: str) -> bool | None:
        """Return a boolean, None when absent."""
        value = self._take(key)
        if value is None or isinstance(value, bool):
            return value
        raise misplaced(self._where(key), value, "true, false or null")

    def int32(self, key: str) -> int:
        """Return a 32-bit integer, 0 when absent."""
        return self._integer(key, _INT32_MIN, INT32_MAX)

    def int64(self, key: str) -> int:
        """Return a 64-bit integer, 0 when absent."""
        return self._integer(key, _INT64_MIN, _INT64_MAX)

    def float32(self, key: str) -> float | None:
        """Return a number rounded to single precision, None when absent."""
        value = self._take(key)
        if value is None:
            return None
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and -_FLOAT32_OVERFLOW < value < _FLOAT32_OVERFLOW
        ):
            return to_float32(value)
        raise misplaced(self._where(key), value, "a number that fits a float32")

    def array(self, key: str, element: Callable[[object, str], Element]) -> tuple[Element, ...]:
        """Return the elements, each read by *element* from its value and path; () when absent."""
        value = self._take(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise misplaced(self._where(key), value, "an array")
        where = self._where(key)
        return tuple(element(item, f"{where}[{place}]") for place, item in enumerate(value))

    def optional(self, key: str, read: Callable[[object, str], Element]) -> Element | None:
        """Return what *read* makes of the value and its path, None when absent."""
        value = self._take(key)
        return None if value is None else read(value, self._where(key))

    def _take(self, key: str) -> object:
        """Return a member and forget it, None when absent or null."""
        return self._left.pop(key.lower(), None)

    def _where(self, key: str) -> str:
        """Return the dotted path of a member."""
        return f"{self._path}.{key}" if self._path else key

    def _integer(self, key: str, minimum: int, maximum: int) -> int:
        """Return an integer within bounds, 0 when absent."""
        value = self._take(key)
        if value is None:
            return 0
        if isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum:
            return value
        raise misplaced(self._where(key), value, f"an integer from {minimum} to {maximum}")
