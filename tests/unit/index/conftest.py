"""An index to drive, with rules a test can change."""

from collections.abc import Callable

import pytest
from index_driver import DriverRules, IndexDriver

from inferencecache.index import PrefixIndex
from inferencecache.settings.index import IndexSettings


@pytest.fixture
def rules() -> DriverRules:
    """DriverRules a test can change."""
    return DriverRules()


@pytest.fixture
def make_driver(rules: DriverRules) -> Callable[..., IndexDriver]:
    """Build a driver around an index with given settings."""

    def make(**settings: int) -> IndexDriver:
        return IndexDriver(PrefixIndex(IndexSettings(**settings), rules))

    return make


@pytest.fixture
def driver(make_driver: Callable[..., IndexDriver]) -> IndexDriver:
    """Give a driver around an index with default settings."""
    return make_driver()
