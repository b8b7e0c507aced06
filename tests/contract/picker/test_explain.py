"""Explaining a request on a whole server: what is said, and that nothing is left behind."""

import json
import re
from pathlib import Path

import pytest
from engine_page import engine_page, vllm_page
from picker_texts import pool_of, provider, worker_set
from served_fleet import ServedFleet, serve_fleet
from served_picker import until

from inferencecache.cli.explain_table import explanation_text
from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.picker.choice import QosClass
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_load import PickerLoadSettings

LOCAL = worker_set(
    "{models: [{name: m}], endpoints: [{name: a, address: 'a:1'}, {name: b, address: 'b:1'}]}", "l"
)
VENDOR = provider("{backendRef: {name: paid}, api: OpenAI, models: [{name: m}]}", "vendor")
BODY = json.dumps({"model": "m", "prompt": list(range(800))}).encode()


LOOKED_UP = ("inferencecache_picker_prefix_total", "inferencecache_picker_prompt_cache_bytes")
"""Who was asked about prompts, and the hashes of prompts that were read, whatever for."""


async def counted(served: ServedFleet) -> list[str]:
    """Return what the picker has counted of Picks."""
    lines = (await served.metrics()).splitlines()
    own = [line for line in lines if line.startswith("inferencecache_picker_")]
    return [line for line in own if not line.startswith(LOOKED_UP)]


async def test_what_is_said_is_what_a_pick_says(tmp_path: Path) -> None:
    """The same reason, the same destination, and a row per candidate."""
    async with serve_fleet(tmp_path, LOCAL, VENDOR) as served:
        answer = await served.explained(BODY, "?tenant=acme")
        picked = await served.pick(BODY, tenant="acme")
        assert (answer["outcome"], answer["reason"]) == ("OK", picked.reason)
        assert answer["destination"] == picked.local.endpoint == "a:1"
        rows = {row["name"]: row for row in answer["explanation"]["candidates"]}
        assert rows["a:1"] == {
            "name": "a:1",
            "tier": "worker-sets",
            "model": "m",
            "barrier": "none",
            "inFlight": 0,
            "queuedTokens": 0,
            "requests": 0,
            "waiting": 0,
            "promptTokens": 800,
            "matchedTokens": 0,
            "source": "none",
            "estimatedMs": 150.0,
            "predictedMs": None,
            "rank": 1,
            "score": 150.0,
        }
        assert rows["provider:default/vendor"]["estimatedMs"] == 1_000.0
        again = await served.explained(BODY)
        assert again["destination"] == "b:1"
        (shown,) = (await served.page("/debug/decisions"))["decisions"]
        assert shown["explanation"]["candidates"][0] == rows["a:1"]


async def test_an_estimate_comes_of_the_numbers_beside_it(tmp_path: Path) -> None:
    """Of the table and of the last Picks, where the engine's page says more than was given out."""
    fast = PickerLoadSettings(scrape_interval_ns=NS_PER_MS)
    async with engine_page() as page:
        page.text = vllm_page(running=3, waiting=2)
        endpoint = f"{{name: a, address: 'a:1', metricsURL: '{page.url}'}}"
        document = worker_set(f"{{models: [{{name: m}}], endpoints: [{endpoint}]}}", "l")
        async with serve_fleet(tmp_path, document, picker_load=fast) as served:
            await until(lambda: len(served.server.picker.fleet.knowledge.signals) == 1)
            body = json.dumps({"model": "m", "prompt": list(range(400))}).encode()
            for given in (0, 1):
                answer = await served.explained(body)
                head, cells = (
                    re.split(r" {2,}", line) for line in explanation_text(answer).splitlines()[-2:]
                )
                shown = dict(zip(head, cells, strict=True))
                ahead, requests, waiting = (
                    int(shown[name]) for name in ("QUEUED", "REQUESTS", "WAITING")
                )
                matched, length = map(int, shown["MATCHED"].split("/"))
                assert (int(shown["IN-FLIGHT"]), ahead) == (given, 400 * given)
                assert (requests, waiting, length) == (5, 2, 400)
                by_hand = 50 + (length - matched + ahead) / 8 + requests * 1 + waiting * 20
                assert shown["ESTIMATED"] == f"{by_hand:.1f}ms"
                assert shown["SCORE"] == f"{by_hand:.2f}"
                twice = 50 + (length - matched + 2 * ahead) / 8 + 2 * (requests * 1 + waiting * 20)
                (row,) = (await served.explained(body, "?qos=batch"))["explanation"]["candidates"]
                assert (row["estimatedMs"], row["score"]) == (by_hand, twice)
                await served.pick(body)
                picked = (await served.page("/debug/decisions"))["decisions"][0]
                assert picked["explanation"] == answer["explanation"]


@pytest.mark.parametrize("qos", QosClass)
async def test_nothing_is_left_behind(tmp_path: Path, qos: QosClass) -> None:
    """No number has changed, no decision is kept, and nothing is in flight."""
    async with serve_fleet(tmp_path, LOCAL, VENDOR) as served:
        before = await counted(served)
        for body in (BODY, b'{"model": "nobody"}', b"no json"):
            await served.explained(body, f"?qos={qos.value.lower()}")
        assert await counted(served) == before
        picker = served.server.picker
        assert len(picker.fleet.knowledge.loads) == 0
        assert (len(picker.plane.decisions), len(picker.records)) == (0, 0)


async def test_a_request_that_failed_somewhere_is_shown_led_elsewhere(tmp_path: Path) -> None:
    """As its next Pick would be; requests of another name, or none, go there all the same."""
    async with serve_fleet(tmp_path, LOCAL) as served:
        picked = await served.pick(BODY, client_request_id="again")
        assert await served.first(picked, 500)
        failed_at = picked.local.endpoint
        answer = await served.explained(BODY, "?request_id=again")
        assert answer["destination"] != failed_at
        assert "avoided=1" in answer["reason"]
        barriers = {row["name"]: row["barrier"] for row in answer["explanation"]["candidates"]}
        assert barriers == {failed_at: "failed_here", answer["destination"]: "none"}
        for query in ("", "?request_id=other"):
            others = (await served.explained(BODY, query))["explanation"]["candidates"]
            assert {row["barrier"] for row in others} == {"none"}


async def test_a_pool_is_named_as_people_do(tmp_path: Path) -> None:
    """With its namespace or without; one that is not there leads nowhere."""
    pool = pool_of("InferenceProvider/vendor", name="outside")
    async with serve_fleet(tmp_path, LOCAL, VENDOR, pool) as served:
        for name in ("outside", "default/outside"):
            answer = await served.explained(BODY, f"?pool={name}")
            assert answer["destination"] == "provider:default/vendor"
        answer = await served.explained(BODY, "?pool=inside")
        assert (answer["outcome"], answer["reason"]) == ("NO_WORKERS", "pool=unknown")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("?qos=SOON", "qos is not allowed; expected one of INTERACTIVE, BATCH, DEFERRABLE"),
        ("?pool=a/b/c", "pool is not allowed; expected NAME or NAMESPACE/NAME"),
        (
            f"?tenant={'t' * 4_097}",
            "tenant: '4097 bytes' is not allowed; expected at most 4096 bytes of UTF-8",
        ),
        (
            f"?pool={'n' * 4_097}/p",
            "pool's namespace: '4097 bytes' is not allowed; expected at most 4096 bytes of UTF-8",
        ),
        (
            "?tier=x",
            "'tier' is not allowed; expected one of the parameters tenant, pool, qos, request_id",
        ),
    ],
)
async def test_wrong_parameters_are_said(tmp_path: Path, query: str, said: str) -> None:
    """With what is allowed instead."""
    async with serve_fleet(tmp_path, LOCAL) as served:
        status, text = await served.post(f"/debug/picker/explain{query}", BODY)
        assert (status, text.strip()) == (400, said)


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    """By a limit of its own."""
    control = ControlSettings(bind_address="127.0.0.1:0", explain_body_bytes_max=100)
    async with serve_fleet(tmp_path, LOCAL, control=control) as served:
        status, text = await served.post("/debug/picker/explain", b"x" * 101)
        assert status == 400
        expected = "expected at most 100 bytes, --control-max-explain-bytes of the server\n"
        assert text == f"the body is too large; {expected}"


async def test_gaps_and_errors_are_counted_by_candidate(tmp_path: Path) -> None:
    """Two reports add up bucket by bucket; a failed answer is no error of foresight."""
    alone = LOCAL.replace(", {name: b, address: 'b:1'}", "")
    async with serve_fleet(tmp_path, alone) as served:
        for status, gaps in ((200, [1] * 15), (200, [2] * 15), (500, [])):
            picked = await served.pick(BODY)
            await served.first(picked, status)
            await served.stub.ReportFinalToken(
                pb.ReportFinalTokenRequest(
                    response_id=picked.response_id, itl_bucket_counts=gaps, itl_bucket_layout=1
                )
            )
        page = await served.metrics()
        name = "inferencecache_picker_itl_seconds_bucket"
        assert f'{name}{{endpoint="a:1",le="0.005"}} 3.0' in page
        assert f'{name}{{endpoint="a:1",le="0.01"}} 6.0' in page
        assert f'{name}{{endpoint="a:1",le="+Inf"}} 45.0' in page
        assert "inferencecache_picker_itl_seconds_sum" not in page
        assert "inferencecache_picker_ttft_error_seconds_count 2.0" in page


async def test_a_deferrable_pick_is_shed_before_its_deadline(tmp_path: Path) -> None:
    """Its caller hears so in time, instead of giving up."""
    busy = LOCAL.replace("{models:", "{priors: {maxConcurrency: 1}, models:")
    early = PickerChoiceSettings(deadline_margin_ns=19 * NS_PER_S)
    async with serve_fleet(tmp_path, busy, picker_choice=early) as served:
        for _ in range(2):
            assert (await served.pick(BODY)).outcome == pb.PickResponse.OK
        picked = await served.pick(BODY, timeout_s=19.5, qos_class=pb.PickRequest.DEFERRABLE)
        assert picked.outcome == pb.PickResponse.POLICY_REJECTED
        assert picked.reason == "shed=deferrable"
        assert 'inferencecache_picker_deferrals_total{result="shed"} 1.0' in await served.metrics()
