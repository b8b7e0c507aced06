"""Endpoints as plugins see them."""

from pipeline_rig import key, provider, worker

from inferencecache.picker.fleet import ModelRow
from inferencecache.picker.pipeline import NO_LOAD, EndpointView


def test_a_worker_has_a_name_labels_and_a_model() -> None:
    """Those of its configuration."""
    view = worker("10.0.0.1:8000", labels={"zone": "a"}, row=ModelRow(name="llama"))
    assert (view.name, view.target_model) == ("10.0.0.1:8000", "llama")
    assert view.labels == {"zone": "a"}
    assert repr(view) == "EndpointView(10.0.0.1:8000)"


def test_a_provider_has_no_labels_and_no_load() -> None:
    """Nobody can say anything of it but its own requests in flight."""
    view = EndpointView(provider().candidate)
    assert view.labels == {}
    assert view.load is NO_LOAD
    assert view.attributes.get(key("anything")) is None
