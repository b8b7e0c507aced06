"""Options of the whole suite, and the logging of its process."""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from inferencecache.transport.grpc_core_log import GRPC_CORE_LOGGER
from inferencecache.transport.structured_log import LOGGER_NAME

# In a fresh clone the first test that draws anything reads all sources for their constants, which
# takes seconds, and a machine with much to do lets any example wait: neither says anything of the
# test. Where a change is judged, the examples are the same ones each time; elsewhere they are new.
settings.register_profile(
    "suite",
    settings.default,
    deadline=None,
    derandomize=os.environ.get("HYPOTHESIS_PROFILE") == "ci",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let long runs be chosen."""
    parser.addoption(
        "--long",
        action="store_true",
        help="also run what takes minutes: soak, million-block and long fuzz runs",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave long runs out unless asked for."""
    if config.getoption("--long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]


@pytest.fixture
def untouched_logging() -> Iterator[None]:
    """Put the process's logging back as it was."""
    root, own = logging.getLogger(), logging.getLogger(LOGGER_NAME)
    core = logging.getLogger(GRPC_CORE_LOGGER)
    before = root.handlers, root.level, own.level, list(core.filters)
    yield
    root.handlers, level, own_level, core.filters = before
    root.setLevel(level)
    own.setLevel(own_level)
