"""Loading traces for a replay."""

from pathlib import Path

import pytest

from inferencecache.app.replay_input import SHIPPED_TRACE, load_trace
from inferencecache.errors import ConfigError


def test_shipped_trace_is_complete() -> None:
    """The package carries the first 1,000 requests of the conversation trace."""
    trace = load_trace(None, 0)

    assert trace.name == SHIPPED_TRACE
    assert len(trace.prompts) == 1_000
    assert sum(prompt.prompt_tokens for prompt in trace.prompts) == 13_732_944


def test_limit_reads_no_further(tmp_path: Path) -> None:
    """Lines behind the limit are not even checked."""
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}\nbroken\n'
    )

    assert len(load_trace(path, 1).prompts) == 1
    with pytest.raises(ConfigError, match=r"t\.jsonl line 2"):
        load_trace(path, 0)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    """A path that leads nowhere is named."""
    with pytest.raises(ConfigError, match=r"gone\.jsonl.*No such file"):
        load_trace(tmp_path / "gone.jsonl", 0)


def test_directory_is_refused(tmp_path: Path) -> None:
    """A directory is no trace."""
    with pytest.raises(ConfigError, match="Is a directory"):
        load_trace(tmp_path, 0)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    """Nothing to play is an error, not an empty table."""
    path = tmp_path / "t.jsonl"
    path.write_text("\n")

    with pytest.raises(ConfigError, match="at least one request"):
        load_trace(path, 0)


def test_a_name_of_any_bytes_can_be_shown(tmp_path: Path) -> None:
    """What no terminal and no plot can show is written as Python writes it."""
    path = tmp_path / "t\x1b\n\udcff.jsonl"
    path.write_text('{"timestamp": 0, "input_length": 5, "output_length": 1, "hash_ids": [0]}\n{\n')

    assert load_trace(path, 1).name == r"t\x1b\n\udcff.jsonl"
    with pytest.raises(ConfigError, match=r"t\\x1b\\n\\udcff\.jsonl line 2"):
        load_trace(path, 0)
