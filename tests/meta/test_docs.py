"""Reference pages are current, and what people look for first is there."""

import re
from collections import Counter
from pathlib import Path

import pytest

from inferencecache import __version__
from inferencecache.cli.reference import pages
from inferencecache.transport.gateway_catalog import GATEWAY_CATALOG
from inferencecache.transport.metric_catalog import CATALOG
from inferencecache.transport.metrics_control import CONTROL_CATALOG
from inferencecache.transport.picker_catalog import PICKER_CATALOG
from inferencecache.transport.picker_plugin_catalog import PICKER_PLUGIN_CATALOG
from inferencecache.types import ReasonCode

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LETS_SOMEBODY_IN = (
    "--insecure-disable-auth",
    "--allowed-controller-sa",
    "--control-token-file",
    "--control-tls-client-ca-file",
    "--config",
    "--help",
)
every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


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
    """Names share the prefix, counters end in total, durations and moments in seconds."""
    catalog = (
        *CATALOG,
        *CONTROL_CATALOG,
        *PICKER_CATALOG,
        *PICKER_PLUGIN_CATALOG,
        *GATEWAY_CATALOG,
    )
    names = [spec.name for spec in catalog]
    assert len(names) == len(set(names))
    for spec in catalog:
        assert spec.name.startswith("inferencecache_")
        assert spec.name.endswith("_total") == (spec.kind == "counter")
        is_time = spec.name.endswith("_timestamp_seconds")
        assert not is_time or spec.kind == "gauge"
        assert (spec.name.endswith("_seconds") and not is_time) == (spec.kind == "histogram")
        assert spec.help.endswith(".")


def test_the_changelog_knows_this_version_or_says_unreleased() -> None:
    """Users learn from it what changed."""
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text or f"## [{__version__}]" in text


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_first_pages_exist(name: str) -> None:
    """A newcomer finds what it is, how it is built and how to change it."""
    assert (ROOT / name).stat().st_size > 0


@every_page
def test_links_lead_somewhere(path: Path) -> None:
    """A page that moved takes its links along."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text())
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (path.parent / link).exists()] == []


@every_page
def test_modules_named_on_pages_exist(path: Path) -> None:
    """A reader who looks for one finds it."""
    names = re.findall(r"`(inferencecache/[\w/.]+)`", path.read_text())
    assert [name for name in names if not (ROOT / name).exists()] == []


@every_page
def test_shown_servers_start(path: Path) -> None:
    """A server that is not told who may use its control listener ends with exit code 2."""
    blocks = re.findall(r"^```(?:sh|bash)?\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
    commands = [
        command
        for block in blocks
        for command in block.replace("\\\n", " ").splitlines()
        if re.match(r"(\.venv/bin/)?inferencecache serve\b", command)
    ]
    assert [
        command for command in commands if not any(f in command for f in LETS_SOMEBODY_IN)
    ] == []


def test_the_glossary_has_each_term_once_and_is_linked() -> None:
    """One meaning per word, where newcomers look."""
    rows = re.findall(
        r"^\| ([^|]+) \| [^|]+ \|$", (ROOT / "docs/glossary.md").read_text(), re.MULTILINE
    )
    terms = Counter(term for row in rows if row != "term" for term in row.split(", "))
    assert [term for term, count in terms.items() if count > 1] == []
    assert len(terms) > 60
    for page in ("README.md", "docs/architecture.md"):
        assert "glossary.md)" in (ROOT / page).read_text()
