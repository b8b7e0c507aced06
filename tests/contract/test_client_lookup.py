"""Both clients over a real socket, against servers that answer, oddly or not."""

from collections.abc import AsyncIterator

import pytest
from both_clients import DRIVERS, Open, opening
from scripted_cache_server import (
    ScriptedServer,
    answer,
    scripted_server,
)

from inferencecache.client import (
    CacheTier,
    ConfigurationWarning,
    FailOpenCause,
    LookupQuery,
    ReasonCode,
    ReplicaHint,
)
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

QUERY = LookupQuery(
    tenant_id="t",
    model_id="m",
    hash_scheme="vllm",
    block_hashes=[b"a" * 8, b"b" * 8],
    block_token_counts=[16, 16],
)
PATIENT = 10_000
"""Milliseconds; the answer is there long before."""


@pytest.fixture(params=sorted(DRIVERS))
async def connect(request: pytest.FixtureRequest) -> AsyncIterator[Open]:
    """Return what opens a client of either kind; all are closed at the end."""
    async with opening(request.param) as open_client:
        yield open_client


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """Run a scripted server."""
    async with scripted_server() as running:
        yield running


@pytest.mark.parametrize("code", ["PREFIX_MATCH", "TENANT_HOT", "AFFINITY_HINT"])
async def test_hint_codes_carry_replicas(connect: Open, server: ScriptedServer, code: str) -> None:
    """The three hint codes give replicas in the server's order, with every field."""
    server.route = answer(code, "r2", "r1")

    result = await connect(server.target).lookup(QUERY, deadline_ms=PATIENT)

    assert result.reason_code is ReasonCode(code)
    assert result.raw_reason_code == code
    assert [hint.replica_id for hint in result.hints] == ["r2", "r1"]
    assert result.hints[0] == ReplicaHint("r2", 10.0, 64, 0.5, CacheTier.T1)
    assert result.is_soft is (code == "TENANT_HOT")
    assert result.server_latency_us == 7
    assert result.cause is None


@pytest.mark.parametrize(
    "code",
    ["NO_HINT", "POLICY_REQUIRES_CHAIN", "TIMEOUT"],
)
async def test_codes_without_hint(connect: Open, server: ScriptedServer, code: str) -> None:
    """The codes without a hint are kept, and replicas that come with them are ignored."""
    server.route = answer(code, "r1")

    result = await connect(server.target).lookup(QUERY, deadline_ms=PATIENT)

    assert result.reason_code is ReasonCode(code)
    assert result.hints == ()
    assert result.cause is None


async def test_unknown_code_is_no_hint(connect: Open, server: ScriptedServer) -> None:
    """A code of a newer server counts as NO_HINT even with replicas, its text is kept."""
    server.route = answer("BRAND_NEW", "r1")

    result = await connect(server.target).lookup(QUERY, deadline_ms=PATIENT)

    assert result.reason_code is ReasonCode.NO_HINT
    assert result.raw_reason_code == "BRAND_NEW"
    assert result.cause is FailOpenCause.UNKNOWN_CODE
    assert result.best() is None


async def test_empty_hint_is_no_hint(connect: Open, server: ScriptedServer) -> None:
    """A match without replicas is a no-op, whatever its code says."""
    server.route = answer("PREFIX_MATCH")

    result = await connect(server.target).lookup(QUERY, deadline_ms=PATIENT)

    assert (result.reason_code, result.cause) == (ReasonCode.NO_HINT, FailOpenCause.EMPTY_HINT)


@pytest.mark.parametrize(("asked", "echoed"), [("sql", ""), ("sql", "chat"), ("", "sql")])
async def test_wrong_echo_is_no_hint(
    connect: Open, server: ScriptedServer, asked: str, echoed: str
) -> None:
    """A hint for another adapter's blocks is not used."""
    server.route = answer("PREFIX_MATCH", "r1", adapter_id=echoed)
    query = LookupQuery(tenant_id="t", model_id="m", hash_scheme="vllm", adapter_id=asked)

    result = await connect(server.target).lookup(query, deadline_ms=PATIENT)

    assert result.reason_code is ReasonCode.NO_HINT
    assert result.cause is FailOpenCause.ADAPTER_MISMATCH


async def test_right_echo_is_a_hint(connect: Open, server: ScriptedServer) -> None:
    """The adapter asked for comes back with the hint."""
    server.route = answer("PREFIX_MATCH", "r1", adapter_id="sql")
    query = LookupQuery(tenant_id="t", model_id="m", hash_scheme="vllm", adapter_id="sql")

    result = await connect(server.target).lookup(query, deadline_ms=PATIENT)

    assert (result.reason_code, result.adapter_id) == (ReasonCode.PREFIX_MATCH, "sql")


async def test_choose_takes_the_best_eligible(connect: Open, server: ScriptedServer) -> None:
    """Replicas the gateway cannot use are passed over; with none left there is no choice."""
    server.route = answer("PREFIX_MATCH", "gone", "r1", "r2")
    client = connect(server.target)

    chosen = await client.choose(QUERY, deadline_ms=PATIENT, eligible={"r2", "r1"})
    none = await client.lookup(QUERY, deadline_ms=PATIENT, eligible={"r9"})

    assert chosen.replica_id == "r1"
    assert (none.reason_code, none.cause) == (ReasonCode.NO_HINT, FailOpenCause.NOT_ELIGIBLE)


async def test_every_field_reaches_the_server(connect: Open, server: ScriptedServer) -> None:
    """A query arrives field by field."""
    query = LookupQuery(
        tenant_id="t",
        model_id="m",
        hash_scheme="vllm",
        adapter_id="a",
        block_hashes=[b"h"],
        block_token_counts=[16],
        prefix_hash=b"p",
        prefix_token_count=3,
        token_ids=[1, 2**32 - 1],
        prompt_text="hello",
        ttft_ms=150,
        tbt_ms=20,
    )

    await connect(server.target).lookup(query, deadline_ms=PATIENT)

    assert server.lookups == [
        pb.LookupRouteRequest(
            tenant_id="t",
            model_id="m",
            hash_scheme="vllm",
            adapter_id="a",
            block_hashes=[b"h"],
            block_token_counts=[16],
            prefix_hash=b"p",
            prefix_token_count=3,
            token_ids=[1, 2**32 - 1],
            prompt_text="hello",
            slo=pb.SLO(ttft_ms=150, tbt_ms=20),
        )
    ]


@pytest.mark.parametrize("code", ["UNKNOWN_TENANT", "UNKNOWN_MODEL", "UNKNOWN_HASH_SCHEME"])
async def test_wrong_key_is_raised_once(connect: Open, server: ScriptedServer, code: str) -> None:
    """A configuration error is raised once per key, and routing goes on as for NO_HINT."""
    raised: list[ConfigurationWarning] = []
    server.route = answer(code, "r1")
    client = connect(server.target, on_warning=raised.append)

    results = [await client.lookup(QUERY, deadline_ms=PATIENT) for _ in range(3)]

    assert [(result.reason_code, result.hints) for result in results] == [
        (ReasonCode(code), ())
    ] * 3
    assert [warning.reason_code for warning in raised] == [ReasonCode(code)]
    assert len(server.lookups) == 3, "one attempt per lookup, never under another key"
