"""``inferencecache explain`` as people use it: a process that asks a process."""

import asyncio
import json
import os
import sys
from pathlib import Path

from picker_texts import WORKER_SET, worker_set
from replay_process import Ended, ended
from server_process import serving

import inferencecache

HOME = str(Path(inferencecache.__file__).parents[1])
BODY = {"model": "qwen", "prompt": [1] * 800}


async def run_explain(*arguments: str) -> Ended:
    """Run the command to its end."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith("INFERENCECACHE_")
    }
    return await ended(
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "inferencecache",
            "explain",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environ | {"PYTHONPATH": HOME, "COLUMNS": "80"},
        )
    )


async def test_a_running_server_explains(tmp_path: Path) -> None:
    """As a table, as JSON, and with exit code 1 where a body leads nowhere."""
    resources = tmp_path / "resources"
    resources.mkdir()
    (resources / "set.yaml").write_text(worker_set(WORKER_SET, name="local"))
    body, unknown = tmp_path / "body.json", tmp_path / "unknown.json"
    body.write_text(json.dumps(BODY))
    unknown.write_text(json.dumps({**BODY, "model": "nobody-has-this"}))
    async with serving(f"--resources={resources}") as server:
        url = f"--control-url=http://{server.startup['snapshot_addr']}"
        table = await run_explain(url, f"--body={body}", "--tenant=acme", "--qos=batch")
        assert (table.code, table.stderr) == (0, [])
        lines = table.stdout.splitlines()
        assert lines[0] == "outcome      OK"
        assert "prompt       800 tokens, counted" in lines
        head, first = lines[-2].split(), lines[-1].split()
        row = dict(zip(head, first, strict=True))
        assert row["CANDIDATE"] == "10.0.0.1:8000"
        assert (row["RANK"], row["BARRIER"], row["ESTIMATED"]) == ("1", "none", "150.0ms")
        shown = await run_explain(url, f"--body={body}", "--output=json")
        answer = json.loads(shown.stdout)
        assert (answer["outcome"], answer["targetModel"]) == ("OK", "qwen-32b")
        nowhere = await run_explain(url, f"--body={unknown}")
        assert nowhere.code == 1
        assert "model=unknown" in nowhere.stdout
        wrong = await run_explain(url, f"--body={body}", "--qos=SOON")
        assert wrong.code == 1
        assert "expected one of INTERACTIVE" in "".join(wrong.stderr)


async def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    """A file that is not there is a mistake of usage; a server that is not there is no answer."""
    missing = await run_explain(f"--body={tmp_path / 'missing'}")
    assert missing.code == 2
    assert "--body" in missing.stderr[0]
    body = tmp_path / "body.json"
    body.write_text("{}")
    silent = await run_explain("--control-url=http://127.0.0.1:1", f"--body={body}")
    assert silent.code == 1


async def test_a_body_without_end_is_not_read_to_it() -> None:
    """One line says how much there may be; nobody is asked."""
    endless = await run_explain("--body=/dev/zero", "--explain-max-body-bytes=100000")

    assert endless.code == 2
    assert endless.stderr == [
        "inferencecache: error: --body: '/dev/zero' is not allowed; expected at most 100,000 bytes"
    ]
