"""Files that a command draws into."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from inferencecache.errors import ConfigError

PLOT_SUFFIXES: Final = (".png", ".svg")
"""The file name endings that say what to draw."""


def check_plot_path(path: Path) -> None:
    """Refuse a path that cannot become a plot, before the result has cost anything.

    Raises:
        ConfigError: It has another ending, or its directory does not exist.
    """
    if path.suffix.lower() not in PLOT_SUFFIXES:
        allowed = f"a file name that ends in {' or '.join(PLOT_SUFFIXES)}"
        raise ConfigError(field="--plot", value=str(path), allowed=allowed)
    if not path.parent.is_dir():
        raise ConfigError(
            field="--plot", value=str(path), allowed="a path in an existing directory"
        )


@contextmanager
def drawn(path: Path) -> Iterator[None]:
    """Turn what goes wrong while *path* is written into an error that names it.

    Raises:
        ConfigError: The file cannot be written.
    """
    try:
        yield
    except OSError as error:
        allowed = f"a writable file ({error.strerror})"
        raise ConfigError(field="--plot", value=str(path), allowed=allowed) from error
