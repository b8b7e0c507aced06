"""What ``inferencecache replay`` is told besides settings."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where the input comes from and the result goes.

    Attributes:
        trace: The trace file, or None for the shipped one.
        as_json: Whether stdout gets JSON instead of tables.
        plot: Where to draw, or None.
    """

    trace: Path | None
    as_json: bool
    plot: Path | None
