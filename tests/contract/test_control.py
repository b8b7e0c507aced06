"""The control surface over HTTP: exact answers, methods, limits."""

import asyncio
import io
import json
import threading
from collections.abc import AsyncIterator

import pytest
from controlled import Controlled, controlled, update

from inferencecache.policy.layers import PolicyLayersMoment
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport import http_control_pages
from inferencecache.types import PROBE_TENANT_ID
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

PLAIN = "text/plain; charset=utf-8"
EMPTY = '{"replicas":null,"tenants":null,"totalPrefixes":0,"hotPrefixes":0}\n'
PROBE = b'{"backend":"b1","model":"m1","hashScheme":"vllm"}'
POLICY = json.dumps(
    {
        "version": 7,
        "policies": [
            {"namespace": "t1", "evictionTTL": 420_000_000_000, "minimumPrefixTokens": 16}
        ],
        "tenants": [{"tenantID": "t1", "maxIndexEntries": 10}],
    }
).encode()


@pytest.fixture
async def control() -> AsyncIterator[Controlled]:
    """Run an open server."""
    async with controlled() as running:
        yield running


async def test_an_empty_snapshot_has_nulls(control: Controlled) -> None:
    """Nothing is null, not an empty array."""
    reply = await control.get("/snapshot")
    assert (reply.status, reply.text) == (200, EMPTY)
    assert reply.headers["Content-Type"] == "application/json"


async def test_a_snapshot_shows_replicas_and_tenants(control: Controlled) -> None:
    """A replica with statistics and entries, and its tenant."""
    stats = pb.ReplicaStats(
        cache_memory_bytes=1_234, hit_rate=0.1, client_version="x", t2_query_tokens=10
    )
    await control.report(update("replica-a", stats=stats))
    shown = json.loads((await control.get("/snapshot")).text)
    assert list(shown) == ["replicas", "tenants", "totalPrefixes", "hotPrefixes"]
    (replica,), (tenant,) = shown["replicas"], shown["tenants"]
    assert list(replica) == [
        "replicaId",
        "tenant",
        "cacheMemoryBytes",
        "hitRate",
        "pressure",
        "lastUpdate",
        "prefixCount",
        "lastEventAt",
        "statsReported",
        "t2QueryTokens",
    ]
    assert (replica["replicaId"], replica["cacheMemoryBytes"]) == ("replica-a", 1_234)
    assert tenant == {
        "tenantId": "t1",
        "indexEntries": 1,
        "hitRate": 0.1,
        "hitRateReported": True,
        "memoryUsed": 0,
    }
    assert shown["totalPrefixes"] == 1


@pytest.mark.parametrize(
    ("path", "methods", "allow"),
    [
        ("/snapshot", ["HEAD", "POST", "PUT", "DELETE", "PATCH"], "GET"),
        ("/policy", ["GET", "HEAD", "DELETE", "PATCH"], "POST, PUT"),
        ("/probe", ["GET", "PUT", "DELETE", "PATCH"], "POST"),
        ("/debug/state", ["POST", "DELETE"], "GET"),
        ("/debug/policy", ["POST"], "GET"),
        ("/debug/resources", ["POST"], "GET"),
        ("/debug/picker/resources", ["POST"], "GET"),
        ("/debug/decisions", ["POST"], "GET"),
        ("/debug/picker/explain", ["GET", "PUT"], "POST"),
        ("/picker/unsuppress", ["GET", "PUT", "DELETE"], "POST"),
    ],
)
async def test_other_methods_are_told_which_are_allowed(
    control: Controlled, path: str, methods: list[str], allow: str
) -> None:
    """405 with an Allow header and a text that ends in two newlines."""
    for method in methods:
        reply = await control.ask(method, path)
        assert reply.status == 405
        assert reply.headers["Allow"] == allow
        assert reply.headers["Content-Type"] == PLAIN
        assert reply.headers["X-Content-Type-Options"] == "nosniff"
        assert reply.text == ("" if method == "HEAD" else "method not allowed\n\n")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/debug/decisions?request=x", "'request' is not allowed; expected one of the parameters "),
        ("/debug/decisions?skip=-1", "skip is not allowed; expected a number from 0 to 999999999"),
        ("/debug/picker/resources?kind=x", "'kind' is not allowed; expected no parameters"),
        ("/debug/state?x", "'x' is not allowed; expected no parameters"),
        ("/debug/policy?%0a=1", r"'\n' is not allowed; expected no parameters"),
        ("/debug/resources?a=1", "'a' is not allowed; expected no parameters"),
    ],
)
async def test_unknown_parameters_are_refused(control: Controlled, path: str, message: str) -> None:
    """Nobody takes everything for what they asked for."""
    reply = await control.get(path)
    assert reply.status == 400
    assert reply.text.startswith(message)


@pytest.mark.parametrize(
    "path", ["/", "/healthz", "/metrics", "/snapshot/", "/Policy", "/debug", "/debug/x"]
)
async def test_nothing_else_is_there(control: Controlled, path: str) -> None:
    """Paths are exact, and the public pages stay on their own port."""
    reply = await control.get(path)
    assert (reply.status, reply.text) == (404, "404 page not found\n")


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_push_is_in_force_when_it_is_answered(control: Controlled, method: str) -> None:
    """204 and an empty body; the type of the content does not matter."""
    reply = await control.ask(method, "/policy", POLICY, headers={"Content-Type": "x/y"})
    assert (reply.status, reply.text) == (204, "")
    assert "Content-Type" not in reply.headers
    resolved = control.server.plane.policies.resolved("t1")
    assert (resolved.ttl_ns, resolved.minimum_prefix_tokens) == (420_000_000_000, 16)
    assert control.server.plane.policies.quota("t1") == 10


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"version":99}', "unsupported policy snapshot version\n"),
        (b'{"version":2}', "unsupported policy snapshot version\n"),
        (b"{}", "unsupported policy snapshot version\n"),
        (
            POLICY + b"{}",
            "decode policy snapshot: trailing content after the first JSON value\n",
        ),
    ],
)
async def test_a_push_outside_the_contract_says_why(
    control: Controlled, body: bytes, text: str
) -> None:
    """400 with the reason; what was in force stays."""
    await control.ask("POST", "/policy", POLICY)
    reply = await control.ask("POST", "/policy", body)
    assert (reply.status, reply.text) == (400, text)
    assert reply.headers["X-Content-Type-Options"] == "nosniff"
    assert control.server.plane.policies.quota("t1") == 10
    assert await control.metric("inferencecache_policy_pushes_total", result="rejected") == 1


@pytest.mark.parametrize("body", [b"", b"not json", b"[]", b'{"version":"7"}', b'{"x":1}'])
async def test_a_push_that_cannot_be_read_says_why(control: Controlled, body: bytes) -> None:
    """Each text begins the same way."""
    reply = await control.ask("POST", "/policy", body)
    assert reply.status == 400
    assert reply.text.startswith("decode policy snapshot: ")


async def test_a_push_that_is_too_large_is_cut_off(control: Controlled) -> None:
    """One byte over a megabyte is too much, whether its length is announced or not."""
    fitting = b'{"version":7}'.ljust(1_048_576)
    assert (await control.ask("POST", "/policy", io.BytesIO(fitting))).status == 204  # type: ignore[arg-type] # any body

    async def chunks() -> AsyncIterator[bytes]:
        yield fitting
        yield b" "

    for body in (io.BytesIO(fitting + b" "), chunks()):
        reply = await control.ask("POST", "/policy", body)  # type: ignore[arg-type] # any body
        assert (reply.status, reply.text) == (
            400,
            "decode policy snapshot: http: request body too large\n",
        )


async def test_compressed_bodies_are_not_unpacked(control: Controlled) -> None:
    """What claims to be compressed is read as it is."""
    headers = {"Content-Encoding": "gzip"}
    assert (await control.ask("POST", "/policy", b"\x1f\x8b", headers=headers)).status == 400
    assert (await control.ask("POST", "/policy", POLICY, headers=headers)).status == 204


async def test_a_client_that_asks_first_is_told_to_go_on(control: Controlled) -> None:
    """Some clients announce a body and wait for leave to send it."""
    async with asyncio.timeout(30):
        assert (await control.ask("POST", "/policy", POLICY, expect100=True)).status == 204


async def test_the_same_push_again_is_no_work(control: Controlled) -> None:
    """A controller that pushes every half minute changes nothing, and logs nothing."""
    for _ in range(3):
        assert (await control.ask("POST", "/policy", POLICY)).status == 204
    pushes = "inferencecache_policy_pushes_total"
    assert await control.metric(pushes, result="replaced") == 1
    assert await control.metric(pushes, result="unchanged") == 2
    assert len(control.log.of("policy_push_applied")) == 1
    assert await control.metric("inferencecache_policy_tenants") == 1
    assert await control.metric("inferencecache_policy_quotas") == 1
    assert await control.metric("inferencecache_policy_revision") == 1


async def test_an_empty_push_wipes_and_warns(control: Controlled) -> None:
    """It may be meant, so it is done; it may be a mistake, so the log says what is gone."""
    await control.ask("POST", "/policy", POLICY)
    assert (await control.ask("POST", "/policy", b'{"version":7}')).status == 204
    assert control.server.plane.policies.quota("t1") is None
    (fields,) = control.log.of("policy_push_empty")
    assert (fields["policies_removed"], fields["quotas_removed"]) == (1, 1)
    assert ("warning", "policy_push_empty") in [line[:2] for line in control.log.lines]


async def test_a_probe_passes_and_leaves_no_trace(control: Controlled) -> None:
    """Ingest and routing work; nobody sees that a probe was there, and nothing becomes warm."""
    reply = await control.ask("POST", "/probe", PROBE)
    assert (reply.status, reply.text) == (
        200,
        '{"backend":"b1","ingest":"ok","routing":"ok","t2":"skipped"}\n',
    )
    assert reply.headers["Content-Type"] == "application/json"
    assert (await control.get("/snapshot")).text == EMPTY
    assert PROBE_TENANT_ID not in (await control.get("/debug/state")).text
    async with control.http.get(f"{control.server.http_url}/readyz") as page:
        assert page.headers["X-Inference-Cache-State"] == "cold"
    await control.report(update())
    async with control.http.get(f"{control.server.http_url}/readyz") as page:
        assert page.headers["X-Inference-Cache-State"] == "warm"
    stages = "inferencecache_probe_stages_total"
    assert await control.metric(stages, stage="routing", result="ok") == 1
    assert await control.metric(stages, stage="t2", result="skipped") == 1


async def test_probes_in_parallel_all_pass(control: Controlled) -> None:
    """Those of one backend take turns."""
    replies = await asyncio.gather(*(control.ask("POST", "/probe", PROBE) for _ in range(8)))
    assert {reply.text.count('"ok"') for reply in replies} == {2}
    assert (await control.get("/snapshot")).text == EMPTY


async def test_probes_beside_reports_on_a_full_index_evict_nobody() -> None:
    """With room for one entry, sixteen probes pass while a replica reports it again and again."""
    settings = throwaway_server_settings(index=IndexSettings(entries_max=1))
    async with controlled(settings) as control:
        await control.report(update())
        replies, _ = await asyncio.gather(
            asyncio.gather(*(control.ask("POST", "/probe", PROBE) for _ in range(16))),
            asyncio.gather(*(control.report(update()) for _ in range(16))),
        )
        assert {reply.text.count('"ok"') for reply in replies} == {2}
        shown = json.loads((await control.get("/snapshot")).text)
        assert shown["totalPrefixes"] == 1
        assert [tenant["tenantId"] for tenant in shown["tenants"]] == ["t1"]


async def test_a_push_is_in_force_as_a_whole_or_not_at_all(control: Controlled) -> None:
    """Whoever looks while pushes come in never sees half of one beside half of another."""
    policies = control.server.plane.policies

    def push(number: int) -> bytes:
        tenants = [{"tenantID": name, "maxIndexEntries": number} for name in ("a", "b")]
        named = [{"namespace": name, "minimumPrefixTokens": number} for name in ("a", "b")]
        return json.dumps({"version": 7, "policies": named, "tenants": tenants}).encode()

    async def push_all() -> None:
        for number in range(1, 101):
            assert (await control.ask("POST", "/policy", push(number))).status == 204

    seen = set()
    pushing = asyncio.create_task(push_all())
    while not pushing.done():
        numbers = {policies.resolved(name).minimum_prefix_tokens for name in ("a", "b")}
        numbers |= {policies.quota(name) or 0 for name in ("a", "b")}
        assert len(numbers) == 1
        seen |= numbers
        await asyncio.sleep(0)
    await pushing
    assert policies.quota("a") == 100
    assert len(seen) > 50


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b'{"model":"m","hashScheme":"s"}',
        b'{"backend":"b","hashScheme":"s"}',
        b'{"backend":"b","model":"m"}',
        PROBE.replace(b"{", b'{"tenant":"t",'),
        PROBE + b"{}",
        PROBE + b"]",
        PROBE + b"garbage",
        PROBE.ljust(4_097),
    ],
)
async def test_a_probe_outside_the_contract_is_refused(control: Controlled, body: bytes) -> None:
    """400 with a reason, and no probe."""
    reply = await control.ask("POST", "/probe", body)
    assert (reply.status, reply.headers["Content-Type"]) == (400, PLAIN)
    assert "probe request" in reply.text
    assert await control.metric("inferencecache_probe_stages_total", stage="t2") is None


async def test_debug_state_tells_degraded_offload_tiers(control: Controlled) -> None:
    """Without queries there is no rate; a rate of 0 is a tier that never has anything."""
    for replica_id, hits, queries in (("none", 0, 0), ("good", 60, 100), ("bad", 0, 100)):
        stats = pb.ReplicaStats(t2_hit_tokens=hits, t2_query_tokens=queries)
        await control.report(update(replica_id, stats=stats))
    shown = json.loads((await control.get("/debug/state")).text)
    rows = {row["replicaId"]: row for row in shown["replicas"]}
    assert "t2HitRate" not in rows["none"]
    assert (rows["good"]["t2HitRate"], rows["good"]["t2Degraded"]) == (0.6, False)
    assert (rows["bad"]["t2HitRate"], rows["bad"]["t2Degraded"]) == (0.0, True)
    rate = "inferencecache_replica_t2_hit_rate"
    assert await control.metric(rate, tenant_id="t1", replica_id="good") == 0.6
    assert await control.metric(rate, tenant_id="t1", replica_id="bad") == 0
    assert await control.metric(rate, tenant_id="t1", replica_id="none") is None


async def test_debug_pages_show_policies_and_resources(control: Controlled) -> None:
    """Both layers of policies, and the state of the resource files."""
    await control.ask("POST", "/policy", POLICY)
    shown = json.loads((await control.get("/debug/policy")).text)
    (row,) = shown["policies"]
    assert (row["tenantId"], row["inForce"], row["files"]) == ("t1", "push", None)
    assert row["push"]["minimumPrefixTokens"] == 16
    resources = await control.get("/debug/resources")
    assert (resources.status, resources.headers["Content-Type"]) == (200, "application/json")
    assert json.loads(resources.text)


async def test_a_view_of_many_policies_is_made_beside_the_loop(
    control: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand tenants take tens of milliseconds to put together; lookups go on."""
    makers = []
    view = PolicyLayersMoment.view

    def watched(moment: PolicyLayersMoment) -> object:
        makers.append(threading.current_thread())
        return view(moment)

    monkeypatch.setattr(PolicyLayersMoment, "view", watched)
    await control.ask("POST", "/policy", POLICY)
    assert json.loads((await control.get("/debug/policy")).text)["policies"]
    assert threading.current_thread() not in makers
    assert len(makers) == 1


async def test_a_page_that_fails_is_a_500_and_logged(
    control: Controlled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The boundary answers and the server lives on."""

    def broken(_snapshot: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(http_control_pages, "snapshot_body", broken)
    reply = await control.get("/snapshot")
    assert (reply.status, reply.text) == (500, "internal error\n")
    assert control.log.of("control_page_failed") == [{"path": "/snapshot"}]
    assert (await control.get("/debug/state")).status == 200
