"""``inferencecache simulate`` as people run it: output and exit codes."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from replay_process import run_simulate_command
from replay_traces import conversations, write_trace

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
NAMES = [
    "round-robin",
    "least-load",
    "prefix-sticky",
    "weighted-profile",
    "estimated-ttft",
    "predicted-ttft",
]


async def test_table_has_every_strategy_and_every_parameter(tmp_path: Path) -> None:
    """The result fits a terminal, says what it depends on, and nothing goes to stderr."""
    trace = str(conversations(tmp_path / "t.jsonl", 60, gap_ms=200))

    result = await run_simulate_command(trace, "--engines=3", "--seed=5", "--cache-blocks=40")

    assert (result.code, result.stderr) == (0, [])
    assert all(len(line.rstrip()) <= 80 for line in result.stdout.splitlines())
    lines = [line.split() for line in result.stdout.splitlines()]
    assert [line[0] for line in lines if line and line[0] in NAMES] == NAMES
    text = " ".join(result.stdout.split())
    for said in ("t.jsonl: 60 requests, 3 engines", "seed 5", "cache-blocks 40", "base-ttft 50ms"):
        assert said in text


async def test_json_repeats_itself(tmp_path: Path) -> None:
    """Stdout is one JSON object; with one seed only the time it takes differs."""
    trace = str(conversations(tmp_path / "t.jsonl", 60, gap_ms=200))
    arguments = (trace, "--json", "--engines=3", "--seed=5")

    first, second = [json.loads((await run_simulate_command(*arguments)).stdout) for _ in range(2)]

    for result in (first, second):
        for strategy in result["strategies"]:
            assert strategy.pop("duration_s") > 0
            assert strategy["requests"] == sum(strategy["requests_by_engine"]) == 60
    assert first == second


@pytest.mark.parametrize("traffic", ["sessions", "cold"])
async def test_generated_traffic_needs_no_trace(traffic: str) -> None:
    """What is generated is named with everything that makes it, and a part of the strategies do."""
    result = await run_simulate_command(
        f"--traffic={traffic}", "--limit=40", "--strategies=least-load,estimated-ttft", "--json"
    )

    summary = json.loads(result.stdout)
    assert [strategy["name"] for strategy in summary["strategies"]] == [
        "least-load",
        "estimated-ttft",
    ]
    assert summary["parameters"]["requests"] == "40"
    assert any(name.startswith(traffic.removesuffix("s")) for name in summary["parameters"])


async def test_plots(tmp_path: Path) -> None:
    """The file's ending decides what is drawn."""
    for suffix in ("png", "svg"):
        result = await run_simulate_command(
            "--traffic=cold", "--limit=20", f"--plot={tmp_path / 'plot'}.{suffix}"
        )
        assert result.code == 0, result.stderr

    assert (tmp_path / "plot.png").read_bytes().startswith(PNG_SIGNATURE)
    assert ET.fromstring((tmp_path / "plot.svg").read_text()).tag.endswith("svg")  # noqa: S314 - ours


async def test_bad_trace_is_one_line_and_code_2(tmp_path: Path) -> None:
    """The line names file, line, field and value."""
    trace = write_trace(tmp_path / "bad.jsonl", [(0, 512, [1]), (5, 512, [1, 2])])

    result = await run_simulate_command(str(trace))

    assert (result.code, result.stdout) == (2, "")
    assert len(result.stderr) == 1
    assert "bad.jsonl line 2" in result.stderr[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--engines=0"], ["--engines"]),
        (["--strategies=fastest"], ["--strategies", "fastest", "estimated-ttft"]),
        (["--traffic=noise"], ["--traffic", "noise", "sessions"]),
        (["--traffic=cold", "some.jsonl"], ["TRACE", "some.jsonl", "--traffic cold"]),
        (["--plot=x.pdf"], ["--plot", ".png"]),
        (["no-such-trace.jsonl"], ["no-such-trace.jsonl"]),
    ],
)
async def test_wrong_usage_is_one_line_and_code_2(arguments: list[str], words: list[str]) -> None:
    """What is wrong is found before anything is played."""
    result = await run_simulate_command("--limit=1", *arguments)

    assert (result.code, result.stdout) == (2, "")
    assert len(result.stderr) == 1
    for word in words:
        assert word in result.stderr[0]
