"""Both clients against the real server, and the pages' code blocks too."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from both_clients import DRIVERS, Driven

from inferencecache.app.server import Server, running_server
from inferencecache.client import (
    CacheUpdate,
    FailOpenCause,
    HeldPrefix,
    LookupQuery,
    ReasonCode,
    ReplicaRef,
)
from inferencecache.client.in_process import InProcessClient
from inferencecache.settings.throwaway import throwaway_server_settings

PATIENT = 10_000
PAGE = Path(__file__).parents[2] / "docs" / "sdk.md"
WARM = LookupQuery(
    tenant_id="t", model_id="m", hash_scheme="vllm", token_ids=range(160)
).fingerprinted(16)
COLD = LookupQuery(
    tenant_id="t", model_id="m", hash_scheme="vllm", token_ids=range(500, 660)
).fingerprinted(16)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Run a real server on free ports."""
    async with running_server(throwaway_server_settings()) as running:
        yield running


@pytest.fixture(params=sorted(DRIVERS))
async def client(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[Driven]:
    """Return a client of either kind, connected to the server."""
    opened = DRIVERS[request.param](server.grpc_target)
    yield opened
    await opened.close()


def holding(replica_id: str, query: LookupQuery) -> CacheUpdate:
    """Return an update by which a replica holds the chain of *query*."""
    prefix = HeldPrefix(
        block_hashes=query.block_hashes, block_token_counts=query.block_token_counts
    )
    return CacheUpdate(
        replica=ReplicaRef("t", "m", replica_id), hash_scheme="vllm", prefixes=[prefix]
    )


async def test_reported_prompt_is_found_until_evicted(client: Driven) -> None:
    """Report, find, evict, lose: in order, each step proved before the next."""
    reporter = client.reporter()
    await reporter.report(holding("r1", WARM))
    await reporter.report(holding("r2", COLD))
    await reporter.flush()

    found = await client.lookup(WARM, deadline_ms=PATIENT)
    await reporter.evict(ReplicaRef("t", "m", "r1"), WARM.block_hashes)
    lost = await client.lookup(WARM, deadline_ms=PATIENT)
    await reporter.close()

    assert found.reason_code is ReasonCode.PREFIX_MATCH
    assert [(hint.replica_id, hint.matched_tokens) for hint in found.hints] == [("r1", 160)]
    assert lost.reason_code is ReasonCode.AFFINITY_HINT
    assert [hint.replica_id for hint in lost.hints] == ["r2"]


async def test_wire_and_process_give_one_result(client: Driven, server: Server) -> None:
    """A lookup over the wire and one in the server's process differ in times alone."""
    reporter = client.reporter()
    await reporter.report(holding("r1", WARM))
    await reporter.report(holding("r2", COLD))
    await reporter.flush()
    local = InProcessClient(server.plane)

    for query in (WARM, COLD, WARM.fingerprinted(16)):
        near, far = local.lookup(query), await client.lookup(query, deadline_ms=PATIENT)
        assert near.reason_code is far.reason_code
        assert near.adapter_id == far.adapter_id
        assert [hint[0::2] for hint in near.hints] == [hint[0::2] for hint in far.hints]
        assert [hint.score for hint in near.hints] == pytest.approx(
            [hint.score for hint in far.hints], rel=1e-2
        )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"tenant_id": "x"}, ReasonCode.UNKNOWN_TENANT),
        ({"model_id": "x"}, ReasonCode.UNKNOWN_MODEL),
        ({"hash_scheme": "x"}, ReasonCode.UNKNOWN_HASH_SCHEME),
        ({"hash_scheme": ""}, ReasonCode.NO_HINT),
    ],
)
async def test_wrong_keys_are_named(
    client: Driven, changes: dict[str, str], code: ReasonCode
) -> None:
    """The server's diagnosis of a key comes through."""
    reporter = client.reporter()
    await reporter.report(holding("r1", WARM))
    await reporter.flush()
    key = {"tenant_id": "t", "model_id": "m", "hash_scheme": "vllm"} | changes

    result = await client.lookup(
        LookupQuery(block_hashes=COLD.block_hashes, block_token_counts=[16] * 10, **key),
        deadline_ms=PATIENT,
    )

    assert (result.reason_code, result.hints) == (code, ())


async def test_code_blocks_of_the_page_run(server: Server) -> None:
    """Every Python block of the page runs, in order, against a server.

    What they show needs an answer, so the machine may be slower than whoever the page is for.
    """
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    source = "\n".join(blocks).replace("localhost:9090", server.grpc_target)
    source = source.replace("deadline_ms=1_000", f"deadline_ms={PATIENT}")
    code = compile(source, str(PAGE), "exec")

    await asyncio.to_thread(exec, code, {"__name__": "page"})

    assert len(blocks) > 5


def test_page_names_every_code_and_cause() -> None:
    """The page's tables are complete."""
    text = PAGE.read_text("utf-8")

    assert all(f"`{code}`" in text for code in ReasonCode)
    assert all(f"| `{cause}` |" in text for cause in FailOpenCause)
