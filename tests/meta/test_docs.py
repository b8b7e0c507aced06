"""Reference pages are current, and what people look for first is there."""

from pathlib import Path

import pytest

from inferencecache import __version__
from inferencecache.cli.reference import pages
from inferencecache.transport.metric_catalog import CATALOG
from inferencecache.transport.metrics_control import CONTROL_CATALOG
from inferencecache.types import ReasonCode

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(pages()))
def test_generated_pages_are_current(name: str) -> None:
    """Run ``python -m inferencecache.cli.reference docs/reference`` after changing a knob."""
    assert (REFERENCE / name).read_text() == pages()[name]


def test_every_reason_code_has_one_row() -> None:
    """The page lists exactly the codes there are."""
    rows = [
        line.split("|")[1].strip().strip("`")
        for line in (REFERENCE / "reason-codes.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    assert sorted(rows) == sorted(ReasonCode)


def test_metric_names_follow_the_rules() -> None:
    """Names share the prefix, counters end in total, durations in seconds."""
    catalog = (*CATALOG, *CONTROL_CATALOG)
    names = [spec.name for spec in catalog]
    assert len(names) == len(set(names))
    for spec in catalog:
        assert spec.name.startswith("inferencecache_")
        assert spec.name.endswith("_total") == (spec.kind == "counter")
        assert spec.name.endswith("_seconds") == (spec.kind == "histogram")
        assert spec.help.endswith(".")


def test_the_changelog_knows_this_version_or_says_unreleased() -> None:
    """Users learn from it what changed."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text or f"## [{__version__}]" in text


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_first_pages_exist(name: str) -> None:
    """A newcomer finds what it is, how it is built and how to change it."""
    assert (ROOT / name).stat().st_size > 0
