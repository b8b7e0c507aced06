"""Resource files as people use them: the flag of a real process."""

from pathlib import Path

import pytest
from resource_texts import policy
from server_process import serving, spawn

from inferencecache.cli.program import run
from inferencecache.transport.metrics_resources import RESOURCE_CATALOG


async def test_a_server_loads_files_before_it_listens(tmp_path: Path) -> None:
    """The first lookup finds its policy."""
    (tmp_path / "a.yaml").write_text(policy())
    async with serving(f"--resources={tmp_path}") as server:
        assert "resources_loaded" in server.events
        assert server.events.index("resources_loaded") < server.events.index("startup")


async def test_a_missing_directory_is_a_usage_error(tmp_path: Path) -> None:
    """One line and exit code 2, as for every wrong setting."""
    server = await spawn(
        "--resources=nowhere",
        "--grpc-bind-address=127.0.0.1:0",
        "--http-bind-address=127.0.0.1:0",
        "--snapshot-bind-address=127.0.0.1:0",
        "--insecure-disable-auth",
        "true",
        directory=str(tmp_path),
    )

    assert await server.exited() == 2
    assert server.lines[-1].startswith("inferencecache: error: --resources: 'nowhere'")


def test_crds_are_written_where_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The paths are printed, one a line."""
    assert run(["crds", f"--output={tmp_path / 'crds'}"]) == 0

    paths = capsys.readouterr().out.split()
    assert len(paths) >= 4
    assert all(Path(path).stat().st_size for path in paths)


def test_a_directory_that_cannot_be_written_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that says why."""
    (tmp_path / "file").write_text("")

    assert run(["crds", f"--output={tmp_path / 'file'}"]) == 2
    assert "--output" in capsys.readouterr().err


def test_metric_names_follow_the_rules() -> None:
    """Names share the prefix, counters end in total, durations in seconds."""
    for spec in RESOURCE_CATALOG:
        assert spec.name.startswith("inferencecache_resource_")
        assert spec.name.endswith("_total") == (spec.kind == "counter")
        assert spec.name.endswith("_seconds") == (spec.kind == "histogram")
        assert spec.help.endswith(".")
