"""Objects as ``kubectl get`` prints them: the columns of their kind, three spaces between."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from inferencecache.resources import Column, ResourceKind

_GAP: Final = "   "
_UNKNOWN: Final = "<unknown>"
_STEP: Final = re.compile(r"\.(\w+)(\[\*\])?")
_FRACTION: Final = re.compile(r"\.\d+")

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_YEAR: Final = 365 * _DAY

Item = dict[str, Any]


def table_of(
    items: Sequence[Item],
    kind: ResourceKind[Any],
    now: datetime,
    *,
    is_wide: bool = False,
    with_namespace: bool = False,
) -> str:
    """Return the table, with a newline at its end.

    Args:
        items: Objects of one kind.
        kind: Their kind, whose columns are shown.
        now: From when ages are counted.
        is_wide: Whether to show all columns.
        with_namespace: Whether to begin with the namespace.
    """
    columns = [column for column in kind.columns if is_wide or not column.is_wide]
    where = ["NAMESPACE"] * with_namespace
    rows = [[*where, "NAME", *(column.name.upper() for column in columns)]]
    rows += [list(_cells(item, columns, now, with_namespace=with_namespace)) for item in items]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "".join(_line(row, widths) for row in rows)


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return _GAP.join(cells).rstrip() + "\n"


def _cells(
    item: Item, columns: Sequence[Column], now: datetime, *, with_namespace: bool
) -> Iterator[str]:
    metadata = item.get("metadata", {})
    if with_namespace:
        yield _text(metadata.get("namespace", ""))
    yield _text(metadata.get("name", ""))
    for column in columns:
        found = list(_find(item, column.path))
        if column.type == "date":
            yield _age(found[0] if found else None, now)
        else:
            yield ",".join(filter(None, map(_text, found)))  # an empty name counts as none


def _find(item: object, path: str) -> Iterator[object]:
    """Yield what *path*, a JSONPath of names and ``[*]``, leads to."""
    found = [item]
    for name, every in _STEP.findall(path):
        found = [value[name] for value in found if isinstance(value, dict) and name in value]
        if every:
            found = [one for value in found if isinstance(value, list) for one in value]
    yield from (value for value in found if value is not None)


def _text(value: object) -> str:
    """Return *value* such that it cannot upset a terminal."""
    text = str(value)
    return text if text.isprintable() else ascii(text)[1:-1]


def _age(created: object, now: datetime) -> str:
    """Return how long ago something was, as people say it."""
    try:
        when = datetime.fromisoformat(_FRACTION.sub("", str(created)))
    except ValueError:
        return _UNKNOWN
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return human_duration(int((now - when).total_seconds()))


def human_duration(seconds: int) -> str:
    """Return a duration in its largest unit that fits, rounded down.

    >>> human_duration(59), human_duration(7 * 86_400 + 3_600), human_duration(2 * 3_600 + 60)
    ('59s', '7d', '2h')
    """
    for unit, name in _UNITS:
        if seconds >= unit:
            return f"{seconds // unit}{name}"
    return "0s"


_UNITS: Final = ((_YEAR, "y"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "m"), (1, "s"))
