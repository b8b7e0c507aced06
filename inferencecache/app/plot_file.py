"""Frame of the product's plots: one look, and files that are equal where the numbers are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure


@contextmanager
def plot_file(path: Path, size_inches: tuple[float, float], title: str) -> Iterator[Figure]:
    """Return a figure to draw into; it is written when the block ends.

    Args:
        path: Ends in ``.png`` or ``.svg``.
        size_inches: Width and height.
        title: Stands above everything.

    Raises:
        OSError: The file cannot be written.
    """
    with mpl.rc_context(
        {
            "font.size": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.hashsalt": "inferencecache",  # equal numbers give equal files
        }
    ):
        figure = Figure(figsize=size_inches, layout="constrained")
        yield figure
        figure.suptitle(title, fontsize=11, parse_math=False)
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        figure.savefig(path, dpi=144, metadata=metadata)
