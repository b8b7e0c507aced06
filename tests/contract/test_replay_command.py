"""``inferencecache replay`` as people run it: output, exit codes, a killed server."""

import json
import signal
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from counting_proxy import counting_proxy
from replay_process import ended, run_replay_command, start_replay
from replay_traces import conversations, hand_trace, write_trace
from server_process import serving

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
TIMED = ("lookup", "duration_s")


async def test_table_has_every_row(tmp_path: Path) -> None:
    """The result on stdout fits a terminal; stderr says that the server is open to all."""
    trace = str(hand_trace(tmp_path / "hand.jsonl"))

    result = await run_replay_command(trace, "--replicas=2", "--overload-factor=0")

    assert result.code == 0
    assert "authentication is off" in result.stderr[0]
    assert len(result.stderr) == 1
    assert all(len(line.rstrip()) <= 80 for line in result.stdout.splitlines())
    gained = "Cache-aware routing found 2.0 x what round robin found, 100% of what there was."
    assert gained in " ".join(result.stdout.split())
    for words in (
        ["round", "robin", "0.236", "1,024"],
        ["cache-aware", "0.472", "2,048"],
        ["infinite", "cache", "0.472", "2,048"],
        ["requests", "4"],
        ["prompt", "tokens", "4,336"],
        ["reason", "codes", "PREFIX_MATCH", "50.0%,"],
        ["lookup", "latency", "p50"],
        ["replica-0"],
        ["replica-1"],
    ):
        lines = [line.split() for line in result.stdout.splitlines()]
        assert any(line[: len(words)] == words for line in lines), (words, result.stdout)


async def test_json_is_all_there_is_and_repeats_itself(tmp_path: Path) -> None:
    """Stdout is one JSON object; with one seed only times differ between two runs."""
    trace = str(conversations(tmp_path / "t.jsonl", 60))
    arguments = (trace, "--json", "--replicas=3", "--cache-blocks=20", "--seed=5")

    first, second = [json.loads((await run_replay_command(*arguments)).stdout) for _ in range(2)]

    assert first["lookup"]["p99_us"] > 0
    assert first["cache_aware"]["requests"] == 60
    assert {key: first[key] for key in first if key not in TIMED} == {
        key: second[key] for key in second if key not in TIMED
    }


async def test_shipped_trace_needs_no_argument() -> None:
    """Without a trace the one in the package is played."""
    result = await run_replay_command("--limit=20", "--json")

    assert json.loads(result.stdout)["trace"] == "mooncake_conversation_1000.jsonl"


async def test_plots(tmp_path: Path) -> None:
    """The file's ending decides what is drawn."""
    trace = str(hand_trace(tmp_path / "t.jsonl"))
    for suffix in ("png", "svg"):
        result = await run_replay_command(trace, f"--plot={tmp_path / 'plot'}.{suffix}")
        assert result.code == 0, result.stderr

    assert (tmp_path / "plot.png").read_bytes().startswith(PNG_SIGNATURE)
    assert ET.fromstring((tmp_path / "plot.svg").read_text()).tag.endswith("svg")  # noqa: S314 - ours


async def test_bad_trace_is_one_line_and_code_2(tmp_path: Path) -> None:
    """The line names file, line, field and value; no server is started."""
    trace = write_trace(tmp_path / "bad.jsonl", [(0, 512, [1]), (5, 512, [1, 2])])

    result = await run_replay_command(str(trace))

    assert (result.code, result.stdout) == (2, "")
    assert len(result.stderr) == 1
    assert "bad.jsonl line 2" in result.stderr[0]
    assert "hash_ids: 2" in result.stderr[0]


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        ("--replicas=0", "--replicas"),
        ("--plot=x.pdf", "--plot"),
        ("--plot=/nowhere/x.png", "--plot"),
        ("--tenant=inferencecache.io/probe", "--tenant"),
        ("no-such-trace.jsonl", "no-such-trace.jsonl"),
    ],
)
async def test_wrong_usage_is_one_line_and_code_2(argument: str, word: str) -> None:
    """What is wrong is found before anything is played."""
    result = await run_replay_command("--limit=1", argument)

    assert (result.code, result.stdout) == (2, "")
    assert len(result.stderr) == 1
    assert word in result.stderr[0]


@pytest.mark.parametrize(
    ("argument", "word"), [("--layout=bogus", "--layout"), ("--replicas=65", "--replicas")]
)
async def test_what_sockets_cannot_do_is_refused_before_a_server_starts(
    argument: str, word: str
) -> None:
    """One line, and none that says that something has begun."""
    result = await run_replay_command("--limit=1", "--through-zmq", argument)

    assert (result.code, result.stdout) == (2, "")
    assert len(result.stderr) == 1
    assert word in result.stderr[0]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_killed_server_is_one_line_and_code_3(tmp_path: Path, number: signal.Signals) -> None:
    """A server that ends in the middle ends the replay with a clear line, without a traceback."""
    trace = conversations(tmp_path / "t.jsonl", 3_000, gap_ms=20)
    async with (
        serving() as server,
        counting_proxy(server.grpc_target, reads=40) as proxy,
    ):
        process = await start_replay(str(trace), f"--server={proxy.target}", "--speed=1")
        await proxy.busy.wait()
        server.process.send_signal(number)
        result = await ended(process)

    assert (result.code, result.stdout) == (3, "")
    assert len(result.stderr) == 1, result.stderr
    assert result.stderr[0].startswith("inferencecache: error: cache server at ")
    assert proxy.target in result.stderr[0]
    assert "of 3000 requests done" in result.stderr[0]
