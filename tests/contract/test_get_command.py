"""``inferencecache get`` as people use it: a process that asks a process, or reads a directory."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import grpc
import pytest
import yaml
from certificates import Authority
from get_command import run_get
from picker_texts import PROVIDER, WORKER_SET, pool_of, provider, worker_set
from served_picker import messages
from server_process import ServerProcess, serving, spawn

from inferencecache.cli.program import run
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc

SAMPLES = Path(__file__).parents[2] / "deploy" / "samples"
FREE = tuple(f"--{name}-bind-address=127.0.0.1:0" for name in ("grpc", "http", "snapshot"))
TABLE = """\
NAME         BACKEND      API      STATE                                     AGE
databricks   databricks   OpenAI   Accepted                                  7d
vertex       vertex       OpenAI   Accepted,BackendUnauthorized,Suppressed   2h
"""
TOKEN = "a-token-for-a-test"


def url_of(server: ServerProcess, scheme: str = "http") -> str:
    """Return the option that names the server's control listener."""
    return f"--control-url={scheme}://{server.startup['snapshot_addr']}"


def write_objects(directory: Path) -> None:
    """Write two providers, a worker set and a pool."""
    (directory / "providers.yaml").write_text(
        provider(PROVIDER, name="databricks")
        + "---\n"
        + provider(PROVIDER.replace("OpenAI", "Anthropic"), name="claude")
        + "---\n"
        + provider(PROVIDER, name="elsewhere", namespace="team-a")
    )
    (directory / "others.yaml").write_text(
        worker_set(WORKER_SET, name="local")
        + "---\n"
        + pool_of("InferenceProvider/databricks", "InferenceWorkerSet/local", name="all")
    )


def cells(text: str) -> list[list[str]]:
    """Return the cells of a table."""
    return [line.split() for line in text.splitlines()]


async def test_a_running_server_is_asked(tmp_path: Path) -> None:
    """Each kind, one object, all namespaces."""
    write_objects(tmp_path)
    async with serving(f"--resources={tmp_path}") as server:
        url = url_of(server)
        providers = await run_get("providers", url)
        header, *rows = cells(providers.stdout)
        assert (providers.code, providers.stderr) == (0, [])
        assert header == ["NAME", "BACKEND", "API", "STATE", "AGE"]
        assert [row[:4] for row in rows] == [
            ["claude", "databricks", "Anthropic", "UnsupportedApiFormat"],
            ["databricks", "databricks", "OpenAI", "Accepted"],
        ]
        assert all(row[4].endswith(("s", "m")) for row in rows)

        everywhere = cells((await run_get("infprov", "-A", url)).stdout)
        assert everywhere[0][0] == "NAMESPACE"
        assert [row[:2] for row in everywhere[1:]] == [
            ["default", "claude"],
            ["default", "databricks"],
            ["team-a", "elsewhere"],
        ]

        one = cells((await run_get("provider", "elsewhere", "-n", "team-a", url)).stdout)
        assert [row[0] for row in one] == ["NAME", "elsewhere"]
        sets = cells((await run_get("workersets", url)).stdout)
        assert sets[1][:4] == ["local", "vllm", "1", "Accepted"]
        pools = cells((await run_get("pools", url)).stdout)
        assert pools[1][:4] == ["all", "2", "2", "Accepted"]


async def test_what_callers_report_is_seen(tmp_path: Path) -> None:
    """A provider that refuses its key twice is out, and the table says so."""
    now = datetime.now(UTC)
    for name, age in (("databricks", timedelta(days=7, hours=1)), ("vertex", timedelta(hours=2))):
        spec = f"{{backendRef: {{name: {name}}}, api: OpenAI, models: [{{name: {name}}}]}}"
        created = f"name: {name}, creationTimestamp: '{(now - age).isoformat()}',"
        text = provider(spec, name=name).replace(f"name: {name},", created, 1)
        (tmp_path / f"{name}.yaml").write_text(text)
    async with serving(f"--resources={tmp_path}") as server:
        async with grpc.aio.insecure_channel(server.grpc_target) as channel:
            picker = pb_grpc.PickerStub(channel)
            for _ in range(2):
                chunks = messages([b'{"model": "vertex", "prompt": "hello"}'])
                pushed = await picker.PushBody(chunks)
                picked = await picker.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
                assert picked.provider.backend_ref.name == "vertex"
                await picker.Abort(
                    pb.AbortRequest(
                        response_id=picked.response_id, reason=pb.AbortRequest.BACKEND_UNAUTHORIZED
                    )
                )
        shown = await run_get("providers", url_of(server))
    assert shown.stdout == TABLE


async def test_objects_are_printed_whole(tmp_path: Path) -> None:
    """As YAML or JSON; one object alone, several as a list."""
    write_objects(tmp_path)
    async with serving(f"--resources={tmp_path}") as server:
        url = url_of(server)
        one = json.loads((await run_get("providers", "databricks", "-o", "json", url)).stdout)
        assert (one["kind"], one["metadata"]["name"]) == ("InferenceProvider", "databricks")
        assert one["status"]["state"] == "Accepted"
        assert [condition["type"] for condition in one["status"]["conditions"]] == [
            "Accepted",
            "ResolvedRefs",
            "Ready",
        ]
        many = yaml.safe_load((await run_get("providers", "-o", "yaml", url)).stdout)
        assert many["kind"] == "List"
        assert [item["metadata"]["name"] for item in many["items"]] == ["claude", "databricks"]
        wide = cells((await run_get("providers", "-o", "wide", url)).stdout)
        assert wide[0][-2:] == ["MODELS", "PATH"]


async def test_what_is_not_there(tmp_path: Path) -> None:
    """No objects are no failure; one that was named is."""
    write_objects(tmp_path)
    async with serving(f"--resources={tmp_path}") as server:
        url = url_of(server)
        none = await run_get("pools", "-n", "nowhere", url)
        assert (none.code, none.stdout) == (0, "")
        assert none.stderr == ["No resources found in nowhere namespace."]
        absent = await run_get("providers", "absent", url)
        assert (absent.code, absent.stdout) == (1, "")
        named = 'inferenceproviders.kinference.buoyant.io "absent"'
        assert absent.stderr == [f"inferencecache: error: {named} not found"]


async def test_a_directory_is_read_without_a_server() -> None:
    """Nobody knows then how old anything is."""
    shown = await run_get("providers", "-A", f"--resources={SAMPLES}")
    assert (shown.code, shown.stderr) == (0, [])
    assert cells(shown.stdout) == [
        ["NAMESPACE", "NAME", "BACKEND", "API", "STATE", "AGE"],
        ["default", "databricks", "databricks", "OpenAI", "Accepted", "<unknown>"],
        ["team-a", "openai", "openai", "OpenAI", "Accepted", "<unknown>"],
    ]


async def test_mistakes_in_a_directory_are_told(tmp_path: Path) -> None:
    """What is right is shown; the exit code says that not all of it is."""
    write_objects(tmp_path)
    (tmp_path / "wrong.yaml").write_text(provider("{api: 7}", name="wrong"))
    shown = await run_get("providers", f"--resources={tmp_path}")
    assert shown.code == 1
    (line,) = shown.stderr
    assert "wrong.yaml" in line
    assert "spec.api: found 7, expected a text" in line
    assert [row[0] for row in cells(shown.stdout)] == ["NAME", "claude", "databricks"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pods",), "KIND: 'pods' is not allowed; expected providers, workersets or pools"),
        (("providers", "--resources=nowhere"), "--resources: 'nowhere'"),
        (("providers", "--control-url=localhost:8081"), "a URL with http:// or https://"),
        (("providers", "--bearer-token-file=absent"), "bearer-token-file: 'absent'"),
        (
            ("providers", "--control-url=https://localhost", "--control-ca-file=absent"),
            "control-ca-file: 'absent'",
        ),
        (("providers", "--control-client-cert-file=c.pem"), "certificate and key are a pair"),
        (("providers", "-o", "xml"), "xml"),
    ],
)
def test_wrong_usage_ends_in_2(
    arguments: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line that says what is allowed."""
    assert run(["get", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_a_server_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    """One line says where it should be."""
    assert run(["get", "providers", "--control-url=http://127.0.0.1:9"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("inferencecache: error: http://127.0.0.1:9/debug/picker/resources: ")


@asynccontextmanager
async def secured(directory: Path, *arguments: str) -> AsyncIterator[ServerProcess]:
    """Run a server whose control listener asks for a token."""
    (directory / "tokens").write_text(sha256(TOKEN.encode()).hexdigest() + "\n")
    (directory / "tokens").chmod(0o600)
    server = await spawn(
        *FREE,
        f"--resources={directory}",
        f"--control-token-file={directory / 'tokens'}",
        *arguments,
        directory=str(directory),
    )
    try:
        server.startup = await server.read_until("startup")
        yield server
    finally:
        server.process.kill()
        await server.exited()
        server.process._transport.close()  # type: ignore[attr-defined] # else it warns at exit


async def test_a_server_that_asks_who_it_is(tmp_path: Path) -> None:
    """A token opens the page, as any other of the control listener."""
    write_objects(tmp_path)
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN + "\n")
    async with secured(tmp_path) as server:
        url = url_of(server)
        refused = await run_get("providers", url)
        assert refused.code == 1
        assert "HTTP status 401" in refused.stderr[0]
        shown = await run_get("providers", url, f"--bearer-token-file={token_file}")
        assert [row[0] for row in cells(shown.stdout)] == ["NAME", "claude", "databricks"]


async def test_a_server_with_a_certificate(tmp_path: Path) -> None:
    """It is checked against the authority that is given."""
    write_objects(tmp_path)
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    options = (f"--control-tls-cert-file={cert_file}", f"--control-tls-key-file={key_file}")
    async with secured(tmp_path, *options) as server:
        url, token = url_of(server, "https"), f"--bearer-token-file={token_file}"
        trust = f"--control-ca-file={authority.write(tmp_path / 'ca.pem')}"
        shown = await run_get("providers", url, token, trust)
        assert [row[0] for row in cells(shown.stdout)] == ["NAME", "claude", "databricks"]
        stranger = await run_get("providers", url, token)
        assert (stranger.code, stranger.stdout) == (1, "")
        assert "certificate verify failed" in stranger.stderr[0]


async def test_a_client_with_a_certificate(tmp_path: Path) -> None:
    """It needs no token."""
    write_objects(tmp_path)
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    trust = authority.write(tmp_path / "ca.pem")
    mine, my_key = authority.client("operator").write(tmp_path, "operator")
    options = (
        f"--control-tls-cert-file={cert_file}",
        f"--control-tls-key-file={key_file}",
        f"--control-tls-client-ca-file={trust}",
        "--control-client-names=cn:operator",
    )
    async with secured(tmp_path, *options) as server:
        url = (url_of(server, "https"), f"--control-ca-file={trust}")
        anonymous = await run_get("providers", *url)
        assert (anonymous.code, "HTTP status 401" in anonymous.stderr[0]) == (1, True)
        shown = await run_get(
            "providers",
            *url,
            f"--control-client-cert-file={mine}",
            f"--control-client-key-file={my_key}",
        )
        assert [row[0] for row in cells(shown.stdout)] == ["NAME", "claude", "databricks"]
