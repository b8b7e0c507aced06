"""Fixtures of the tests over a real channel."""

from collections.abc import AsyncIterator

import pytest
from served_plane import ServedPlane, serve


@pytest.fixture
async def served() -> AsyncIterator[ServedPlane]:
    """Serve a plane at its defaults, on a free port."""
    async with serve() as running:
        yield running
