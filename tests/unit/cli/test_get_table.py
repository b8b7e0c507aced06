"""Tables of objects look as ``kubectl`` prints them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from inferencecache.cli.get_table import human_duration, table_of
from inferencecache.resources.inference_pool import INFERENCE_POOL
from inferencecache.resources.inference_provider import INFERENCE_PROVIDER
from inferencecache.resources.inference_worker_set import INFERENCE_WORKER_SET

NOW = datetime(2026, 1, 9, 12, tzinfo=UTC)
EXAMPLE = """\
NAME         BACKEND      API      STATE                                     AGE
databricks   databricks   OpenAI   Accepted                                  7d
vertex       vertex       OpenAI   Accepted,BackendUnauthorized,Suppressed   2h
"""


def item(name: str, state: str, created: str | None, **spec: Any) -> dict[str, Any]:
    """Return an object."""
    metadata = {"name": name, "namespace": "team-a"}
    if created is not None:
        metadata["creationTimestamp"] = created
    return {"metadata": metadata, "spec": spec, "status": {"state": state}}


def providers() -> list[dict[str, Any]]:
    """Return two providers, one of them in trouble."""
    return [
        item(
            "databricks",
            "Accepted",
            "2026-01-02T12:00:00.123456789Z",
            backendRef={"name": "databricks"},
            api="OpenAI",
            models=[{"name": ""}, {"name": "a"}, {"aliases": ["x"]}, {"name": "b"}],
            path="/v1",
        ),
        item(
            "vertex",
            "Accepted,BackendUnauthorized,Suppressed",
            "2026-01-09T10:00:00Z",
            backendRef={"name": "vertex"},
            api="OpenAI",
            models=[],
        ),
    ]


def test_providers() -> None:
    """Name, backend, API, state and age, three spaces between columns."""
    assert table_of(providers(), INFERENCE_PROVIDER, NOW) == EXAMPLE


def test_wide_tables_have_more_columns() -> None:
    """Several values stand in one cell; a model without a name is none."""
    header, first, _second = table_of(
        providers(), INFERENCE_PROVIDER, NOW, is_wide=True
    ).splitlines()
    assert header.split() == ["NAME", "BACKEND", "API", "STATE", "AGE", "MODELS", "PATH"]
    assert first.split()[-2:] == ["a,b", "/v1"]


def test_namespaces_come_first() -> None:
    """Where objects of several are shown."""
    header, first, _second = table_of(
        providers(), INFERENCE_PROVIDER, NOW, with_namespace=True
    ).splitlines()
    assert header.startswith("NAMESPACE   NAME  ")
    assert first.startswith("team-a      databricks  ")


def test_other_kinds() -> None:
    """Each has its own columns."""
    sets = table_of([item("w", "Accepted", None)], INFERENCE_WORKER_SET, NOW)
    assert sets.splitlines()[0].split() == ["NAME", "ENGINE", "ENDPOINTS", "STATE", "AGE"]
    pools = table_of([item("w", "Accepted", None)], INFERENCE_POOL, NOW)
    assert pools.splitlines()[0].split() == ["NAME", "MEMBERS", "TIERS", "STATE", "AGE"]


@pytest.mark.parametrize("created", [None, "yesterday", "", 7])
def test_an_age_that_nobody_knows(created: Any) -> None:
    """It says so."""
    (_header, row) = table_of(
        [item("a", "Accepted", created, api="OpenAI")], INFERENCE_PROVIDER, NOW
    ).splitlines()
    assert row.endswith("<unknown>")


def test_values_cannot_upset_a_terminal() -> None:
    """A model may be called anything."""
    found = item("a", "Accepted", None, models=[{"name": "\x1b[31mred"}])
    text = table_of([found], INFERENCE_PROVIDER, NOW, is_wide=True)
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (3_599, "59m"),
        (3_600, "1h"),
        (86_399, "23h"),
        (86_400, "1d"),
        (364 * 86_400, "364d"),
        (365 * 86_400, "1y"),
        (9 * 365 * 86_400, "9y"),
    ],
)
def test_durations_have_one_unit(seconds: int, text: str) -> None:
    """The largest that fits."""
    assert human_duration(seconds) == text
