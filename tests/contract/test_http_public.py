"""The public HTTP pages: exact answers, any method, nothing else."""

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families

from inferencecache.app.server import Server, running_server
from inferencecache.cli.reference import pages
from inferencecache.settings.http import HttpSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.http_public import PublicView, public_listener
from inferencecache.transport.listen import ListenError
from inferencecache.transport.structured_log import StructuredLog
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as rpc

FREE = "127.0.0.1:0"
METHODS = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PURGE"]
NOT_PUBLIC = [
    "/snapshot",
    "/policy",
    "/probe",
    "/debug",
    "/",
    "/healthz/",
    "/Healthz",
    "/metrics/x",
    "//healthz",
]
PLAIN = "text/plain; charset=utf-8"


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Run a server on free ports."""
    async with running_server(throwaway_server_settings()) as running:
        yield running


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Offer an HTTP client."""
    async with aiohttp.ClientSession() as session:
        yield session


async def report(server: Server, model_id: str, *, tenant_id: str = "t1") -> None:
    """Report one chain of two blocks to *server*."""
    update = pb.CacheStateUpdate(
        tenant_id=tenant_id,
        model_id=model_id,
        replica_id="a",
        hash_scheme="vllm",
        prefixes=[pb.PrefixEntry(block_hashes=[b"1", b"2"], block_token_counts=[64, 64])],
    )
    async with grpc.aio.insecure_channel(server.grpc_target) as channel:
        assert (await rpc.InferenceCacheStub(channel).ReportCacheState(iter([update]))).accepted


async def ask(server: Server, model_id: str) -> pb.LookupRouteResponse:
    """Look up the reported chain."""
    request = pb.LookupRouteRequest(
        tenant_id="t1",
        model_id=model_id,
        hash_scheme="vllm",
        block_hashes=[b"1", b"2"],
        block_token_counts=[64, 64],
    )
    async with grpc.aio.insecure_channel(server.grpc_target) as channel:
        answer: pb.LookupRouteResponse = await rpc.InferenceCacheStub(channel).LookupRoute(request)
        return answer


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_answer_any_method(
    server: Server, http: aiohttp.ClientSession, method: str, path: str
) -> None:
    """Whatever the method, a probe learns that all is well."""
    async with http.request(method, server.http_url + path) as page:
        assert (page.status, await page.text()) == (200, "ok\n")
        assert page.headers["Content-Type"] == PLAIN


async def test_head_gets_the_same_without_a_body(
    server: Server, http: aiohttp.ClientSession
) -> None:
    """HEAD shows length and type only."""
    async with http.head(f"{server.http_url}/healthz") as page:
        assert (page.status, await page.read()) == (200, b"")
        assert page.headers["Content-Length"] == "3"


@pytest.mark.parametrize("path", NOT_PUBLIC)
async def test_nothing_else_is_public(
    server: Server, http: aiohttp.ClientSession, path: str
) -> None:
    """The control surface and every other path are not there."""
    for method in ("GET", "POST"):
        async with http.request(method, server.http_url + path) as page:
            assert (page.status, await page.text()) == (404, "404 page not found\n")
            assert page.headers["Content-Type"] == PLAIN
            assert page.headers["X-Content-Type-Options"] == "nosniff"


async def test_readiness_says_cold_until_the_first_report(
    server: Server, http: aiohttp.ClientSession
) -> None:
    """A restarted server is ready, and says that it knows nothing yet."""
    async with http.get(f"{server.http_url}/readyz") as page:
        assert page.headers["X-Inference-Cache-State"] == "cold"
    await report(server, "m1")
    async with http.get(f"{server.http_url}/readyz") as page:
        assert page.headers["X-Inference-Cache-State"] == "warm"
        assert page.status == 200


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/nothing"])
async def test_a_body_in_a_wrong_encoding_is_not_looked_at(
    server: Server, http: aiohttp.ClientSession, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer is that of a request without a body, and nothing is logged."""
    url, headers = server.http_url + path, {"Content-Encoding": "gzip"}
    async with http.get(url) as page:
        expected = page.status
    for _ in range(2):  # the second finds the connection as it should be
        async with http.post(url, data=b"abcd", headers=headers) as page:
            assert page.status == expected
            await page.read()
    assert not caplog.records


async def test_not_ready_is_503_and_a_broken_page_500() -> None:
    """The body of the refusal is exact; a page that fails is answered and logged."""

    async def broken() -> bytes:
        raise ValueError("metrics are broken")

    view = PublicView(is_ready=lambda: False, is_warm=lambda: False, render_metrics=broken)
    listener = public_listener(HttpSettings(bind_address=FREE), view, StructuredLog())
    url = f"http://{await listener.start()}"
    try:
        async with aiohttp.ClientSession() as http:
            async with http.get(f"{url}/readyz") as page:
                assert (page.status, await page.text()) == (503, "not ready\n\n")
                assert page.headers["X-Content-Type-Options"] == "nosniff"
                assert page.headers["Content-Type"] == PLAIN
            async with http.get(f"{url}/metrics") as page:
                assert (page.status, await page.text()) == (500, "internal error\n")
            async with http.get(f"{url}/healthz") as page:
                assert page.status == 200
    finally:
        await listener.stop()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT"])
async def test_a_silent_connection_is_closed(sent: bytes) -> None:
    """Whoever sends no complete request does not hold a connection for ever."""
    settings = throwaway_server_settings(
        http=HttpSettings(bind_address=FREE, header_timeout_ns=1_000_000),
    )
    async with running_server(settings) as server, asyncio.timeout(30):
        address = server.addresses.http
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(sent)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_taken_port_leaves_nothing_behind(server: Server) -> None:
    """If the second listener cannot start, the first one is closed again."""
    settings = throwaway_server_settings(
        http=HttpSettings(bind_address=str(server.addresses.http)),
    )
    second = Server(settings)
    with pytest.raises(ListenError, match="http: cannot listen"):
        await second.start()
    with pytest.raises(RuntimeError, match="not been started"):
        _ = second.addresses


async def scrape(server: Server, http: aiohttp.ClientSession) -> dict[tuple[str, str], float]:
    """Return the value of each sample by name and ``label=value`` pairs."""
    async with http.get(f"{server.http_url}/metrics") as page:
        assert page.status == 200
        assert page.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text = await page.text()
    return {
        (sample.name, ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_lookups_and_ingest_show_on_the_metrics_page(
    server: Server, http: aiohttp.ClientSession
) -> None:
    """Names, labels and numbers are those of the contract."""
    before = await scrape(server, http)
    assert before["inferencecache_server_up", ""] == 1
    assert before["inferencecache_server_grpc_tls_enabled", ""] == 0
    assert not [name for name, _ in before if name.startswith("inferencecache_lookup_route_calls")]
    await report(server, "m1")
    assert (await ask(server, "m1")).reason_code == "PREFIX_MATCH"
    assert (await ask(server, "stranger")).reason_code == "UNKNOWN_MODEL"
    after = await scrape(server, http)
    calls = "inferencecache_lookup_route_calls_total"
    assert after[calls, "hint_used=true,model=m1,reason_code=PREFIX_MATCH"] == 1
    assert after[calls, "hint_used=false,model=other,reason_code=UNKNOWN_MODEL"] == 1
    assert after["inferencecache_lookup_route_latency_seconds_count", "model=m1"] == 1
    assert after["inferencecache_lookup_route_latency_seconds_bucket", "le=+Inf,model=m1"] == 1
    assert after["inferencecache_index_entries", "model=m1"] == 2
    assert after["inferencecache_index_held_entries", ""] == 2
    assert after["inferencecache_ingest_updates_total", ""] == 1
    assert after["inferencecache_ingest_entries_total", ""] == 1
    assert ("process_resident_memory_bytes", "") in after
    assert [name for name, _ in after if name.startswith("python_gc_")]


@pytest.mark.parametrize(("blocks_max", "cut"), [(1, 1), (2, 0)])
async def test_lookups_of_overlong_chains_show_on_the_metrics_page(
    http: aiohttp.ClientSession, blocks_max: int, cut: int
) -> None:
    """One block more than counts is one too many."""
    settings = throwaway_server_settings(lookup=LookupSettings(chain_blocks_max=blocks_max))
    async with running_server(settings) as server:
        await report(server, "m1")
        answer = await ask(server, "m1")
        page = await scrape(server, http)

    assert [s.matched_tokens for s in answer.replica_scores] == [64 * blocks_max]
    assert page["inferencecache_lookup_route_chains_cut_total", ""] == cut


async def test_the_page_shows_only_what_the_catalogue_knows(
    server: Server, http: aiohttp.ClientSession
) -> None:
    """No metric of ours is missing from the reference page."""
    await report(server, "m1")
    await ask(server, "m1")
    names = set(re.findall(r"^\| `(inferencecache_\w+)` \|", pages()["metrics.md"], re.MULTILINE))
    histograms = {name for name in names if name.endswith("_seconds")}
    known = names | {name + end for name in histograms for end in ("_bucket", "_count", "_sum")}
    shown = {name for name, _ in await scrape(server, http) if name.startswith("inferencecache_")}
    assert shown <= known
