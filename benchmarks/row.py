"""One line of the table: what was measured, against which target, and what others need for it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict


class Bound(StrEnum):
    """Which side of the target is good."""

    AT_MOST = "≤"
    AT_LEAST = "≥"
    NONE = ""


class Verdict(StrEnum):
    """How a row compares with its target."""

    MET = "met"
    MISSED = "MISSED"
    MEASURED = "-"
    SKIPPED = "skipped"


class RowFields(TypedDict):
    """A row as JSON."""

    what: str
    target: str
    value: float | None
    unit: str
    naive: float | None
    peer: float | None
    verdict: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement.

    Attributes:
        what: Workload in a few words.
        unit: Unit of *value*, *target*, *naive* and *peer*.
        value: The measured median, or the statistic that *what* names; None if not measured.
        bound: Which side of *target* is good.
        target: The limit, None where there is none.
        naive: The same work done by the plain-dict model.
        peer: The same work done by the radix tree of ``ai-dynamo-runtime``.
        peer_ratio_max: Largest accepted *value* / *peer*.
        naive_ratio_max: Largest accepted *value* / *naive*.
        note: What else was seen.
    """

    what: str
    unit: str
    value: float | None
    bound: Bound = Bound.NONE
    target: float | None = None
    naive: float | None = None
    peer: float | None = None
    peer_ratio_max: float | None = None
    naive_ratio_max: float | None = None
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether all of the row's targets are met."""
        if self.value is None:
            return Verdict.SKIPPED
        results = [
            self._within_target(),
            _within_ratio(self.value, self.peer, self.peer_ratio_max),
            _within_ratio(self.value, self.naive, self.naive_ratio_max),
        ]
        known = [result for result in results if result is not None]
        if not known:
            return Verdict.MEASURED
        return Verdict.MET if all(known) else Verdict.MISSED

    @property
    def target_text(self) -> str:
        """The targets in words."""
        parts = []
        if self.target is not None:
            parts.append(f"{self.bound} {number(self.target)} {self.unit}".rstrip())
        if self.peer_ratio_max is not None:
            parts.append(f"≤ {self.peer_ratio_max} x peer")
        if self.naive_ratio_max is not None:
            parts.append(f"≤ {self.naive_ratio_max} x naive")
        return ", ".join(parts) or "-"

    def scaled_text(self, slowness: float) -> str:
        """What the value comes to on a machine *slowness* times as fast, in words."""
        if self.value is None or self.target is None:
            return "-"
        if self.unit in {"us", "ms"}:
            return f"{number(self.value / slowness)} {self.unit}"
        if self.unit.endswith("/s"):
            return f"{number(self.value * slowness)} {self.unit}"
        return "-"

    def _within_target(self) -> bool | None:
        if self.target is None or self.value is None:
            return None
        if self.bound is Bound.AT_LEAST:
            return self.value >= self.target
        return self.value <= self.target

    def fields(self) -> RowFields:
        """Return the row for a JSON file."""
        return RowFields(
            what=self.what,
            target=self.target_text,
            value=self.value,
            unit=self.unit,
            naive=self.naive,
            peer=self.peer,
            verdict=self.verdict.value,
            note=self.note,
        )


def _within_ratio(value: float, other: float | None, ratio_max: float | None) -> bool | None:
    if other is None or ratio_max is None:
        return None
    return value <= other * ratio_max


def number(value: float | None) -> str:
    """Return *value* with three significant digits and digit groups."""
    if value is None:
        return "-"
    if abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
