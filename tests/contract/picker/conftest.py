"""Fixtures of the picker's conformance tests."""

from collections.abc import AsyncIterator

import pytest
from served_picker import ServedPicker, serve_picker

from inferencecache.clock import ManualClock


@pytest.fixture
async def served() -> AsyncIterator[ServedPicker]:
    """Serve a picker with the small limits and a clock that stands still."""
    async with serve_picker(clock=ManualClock(1)) as running:
        yield running
        assert not running.recorder.failures
