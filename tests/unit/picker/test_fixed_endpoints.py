"""Endpoints that are written down: how they are read."""

import pytest

from inferencecache.errors import ConfigError
from inferencecache.picker.fixed_endpoints import FixedEndpoint, read_endpoints


def test_endpoints_are_read() -> None:
    """With and without another name for the engine; blanks and empty items mean nothing."""
    text = "m=host:1, m=[::1]:2 ,,alias=10.0.0.1:3/org/model"
    assert read_endpoints(text) == [
        FixedEndpoint(model="m", endpoint="host:1", target_model="m"),
        FixedEndpoint(model="m", endpoint="[::1]:2", target_model="m"),
        FixedEndpoint(model="alias", endpoint="10.0.0.1:3", target_model="org/model"),
    ]
    assert read_endpoints("") == []


@pytest.mark.parametrize("text", ["m", "m=", "=h:1", "m=h", "m=h:0", "m=:1", "m=h:1/", "m=h:99999"])
def test_another_form_is_refused(text: str) -> None:
    """At the start, and not at the first request."""
    with pytest.raises(ConfigError):
        read_endpoints(text)
