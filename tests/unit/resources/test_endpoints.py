"""Endpoints: their addresses, and lists of them in a file of their own."""

import json

import pytest
from picker_texts import MODELS, state_of, worker_set
from resource_texts import document, load

SET = worker_set(f"{{{MODELS}, endpointsFile: a.endpoints.yaml}}")
LIST = "- {name: a, address: 'h:1'}\n- {name: b, address: 'h:2', weight: 3}\n"


def one_at(address: str) -> str:
    """Return a worker set with one endpoint."""
    return worker_set(f"{{{MODELS}, endpoints: [{{name: a, address: '{address}'}}]}}")


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.7:8000",
        "llama-0.llama.default.svc:8000",
        "host:1",
        "host:65535",
        "[::1]:8000",
        "[fd00::8]:8000",
        "[::ffff:10.0.0.1]:8000",
    ],
)
def test_addresses(address: str) -> None:
    """Host and port, an IPv6 address in brackets."""
    state = load({"a.yaml": one_at(address)})
    assert not state.errors


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.7",
        ":8000",
        "host:0",
        "host:65536",
        "host:080",
        "host:99999",
        "::1:8000",
        "[::1]",
        "[host]:80",
        "http://host:80",
        "host:80/path",
        "ho st:80",
        "[fe80::1%eth0]:80",
        "[:::]:80",
        "[1::2::3]:80",
    ],
)
def test_what_is_no_address(address: str) -> None:
    """It is refused, with an example."""
    state = load({"a.yaml": one_at(address)})
    (error,) = state.errors
    assert error.field == "spec.endpoints[0].address"
    assert error.value == f"'{address}'"


def test_a_list_is_enough() -> None:
    """Its worker set is whole with it."""
    state = load({"w.yaml": SET, "a.endpoints.yaml": LIST})
    assert not state.errors
    assert state_of(state, "InferenceWorkerSet", "w").name == "Accepted"


def test_json_is_yaml() -> None:
    """Programs write it more easily."""
    text = json.dumps([{"name": "a", "address": "h:1"}])
    spec = SET.replace(".yaml", ".json")
    state = load({"w.yaml": spec, "a.endpoints.json": text})
    assert not state.errors
    assert state_of(state, "InferenceWorkerSet", "w").name == "Accepted"


def test_an_empty_list_is_no_endpoint() -> None:
    """All workers may be gone; that is no mistake."""
    state = load({"w.yaml": SET, "a.endpoints.yaml": "[]"})
    assert not state.errors
    assert state_of(state, "InferenceWorkerSet", "w").message == "there is no endpoint"


@pytest.mark.parametrize(
    ("text", "field", "allowed"),
    [
        ("{name: a}\n", "spec.endpoints", "a list"),
        ("- {name: a, address: 'h:1', extra: 1}\n", "spec.endpoints[0].extra", "one of the"),
        ("- {name: a, address: h}\n", "spec.endpoints[0].address", "for example"),
        ("- {name: a, name: b, address: 'h:1'}\n", "spec.endpoints[0].name", "each key once"),
        (
            "- {name: a, address: 'h:1'}\n- {name: a, address: 'h:2'}\n",
            "spec.endpoints[1].name",
            "each name once",
        ),
        ("[", "", "YAML"),
        ("", "", "at least one YAML document"),
    ],
)
def test_a_mistake_keeps_the_last_good_list(text: str, field: str, allowed: str) -> None:
    """The error says where; the worker set is as it was."""
    before = load({"w.yaml": SET, "a.endpoints.yaml": LIST})
    after = load({"w.yaml": SET, "a.endpoints.yaml": text}, before)
    (error,) = after.errors
    assert (error.place.file, error.field) == ("a.endpoints.yaml", field)
    assert allowed in error.allowed
    assert state_of(after, "InferenceWorkerSet", "w").name == "Accepted"
    assert [key.name for key in after.held] == ["a.endpoints.yaml"]


def test_no_document_is_of_this_kind() -> None:
    """The file alone says that it holds endpoints."""
    text = document("EndpointsFile", "a.endpoints.yaml", "{endpoints: []}")
    (error,) = load({"a.yaml": text}).errors
    assert (error.field, error.value) == ("kind", "'EndpointsFile'")
    assert "EndpointsFile" not in error.allowed


def test_a_second_document_is_a_mistake() -> None:
    """Nobody could tell which counts."""
    state = load({"a.endpoints.yaml": LIST + "---\n" + LIST})
    (error,) = state.errors
    assert error.allowed.startswith("each object once")


def test_a_file_that_is_gone_leaves_an_incomplete_set() -> None:
    """Gone is gone."""
    before = load({"w.yaml": SET, "a.endpoints.yaml": LIST})
    after = load({"w.yaml": SET}, before)
    assert state_of(after, "InferenceWorkerSet", "w").name == "Incomplete"
