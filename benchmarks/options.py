"""What the command line asks of every group."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Sizes and times.

    Attributes:
        quick: Smaller sizes and shorter runs; numbers are for a look, not for the record.
    """

    quick: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """Index sizes in blocks, smallest first; flatness compares first and last."""
        return (10_000, 100_000) if self.quick else (10_000, 100_000, 1_000_000)

    @property
    def blocks_max(self) -> int:
        """The largest size."""
        return self.sizes[-1]

    @property
    def budget_s(self) -> float:
        """Seconds per timing."""
        return 0.2 if self.quick else 1.0

    @property
    def load_s(self) -> float:
        """Seconds per phase of a load test."""
        return 3.0 if self.quick else 10.0
