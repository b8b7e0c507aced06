"""The list of engines of one producer."""

from pathlib import Path

import pytest

from inferencecache.errors import ConfigError
from inferencecache.settings.sources_file import read_sources
from inferencecache.settings.subscribe import EngineSettings, SourceSettings

DEFAULT = SourceSettings(engine=EngineSettings(model_id="m", tenant_id="t"))


def written(tmp_path: Path, text: str) -> Path:
    """Return a file with *text*."""
    path = tmp_path / "sources.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_entries_fill_up_from_the_command_line(tmp_path: Path) -> None:
    """What an entry gives wins, what it leaves out is as on the command line."""
    path = written(
        tmp_path,
        "- {replica-id: a, block-size: 32, stats-interval: 2s}\n"
        "- {replica-id: b, tenant-id: other, separate-ranks: true}\n",
    )
    first, second = read_sources(path, DEFAULT)

    assert (first.engine.replica_id, first.engine.tenant_id) == ("a", "t")
    assert first.mapper.block_size_tokens == 32
    assert first.engine.stats_interval_ns == 2_000_000_000
    assert (second.engine.tenant_id, second.engine.model_id) == ("other", "m")
    assert second.engine.separate_ranks


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("- {replica-id: a, server: x}\n", "server"),
        ("- {replica-id: a, block-size: many}\n", "block-size"),
        ("- {dp-size: 0}\n", "dp-size"),
        ("- {replica-id: a, replica-id: b}\n", "replica-id"),
        ("- just text\n", "entry 1"),
        ("- {1: a}\n", "entry 1"),
        ("replica-id: a\n", "sources.yaml"),
        ("", "sources.yaml"),
        ("- {", "--sources"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, field: str) -> None:
    """One error that says where."""
    with pytest.raises(ConfigError) as caught:
        read_sources(written(tmp_path, text), DEFAULT)

    assert field in caught.value.field


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error names the flag."""
    with pytest.raises(ConfigError) as caught:
        read_sources(tmp_path / "none.yaml", DEFAULT)

    assert caught.value.field == "--sources"
