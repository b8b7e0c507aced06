"""Picks from files by a whole server: pools, tenants, providers, reloads, health (B, E to I)."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from picker_texts import pool_of, provider, worker_set
from resource_texts import document
from served_fleet import NOT_SERVING, SERVING, ServedFleet, serve_fleet, until_health
from served_picker import PROMPT

from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.picker import PickerSettings

OK, DEGRADED = pb.PickResponse.OK, pb.PickResponse.DEGRADED
NO_WORKERS, REJECTED = pb.PickResponse.NO_WORKERS, pb.PickResponse.POLICY_REJECTED
UNRESOLVED, UNAUTHORIZED = 3, 4

LOCAL = worker_set("{models: [{name: m}], endpoints: [{name: a, address: '10.0.0.1:8000'}]}", "l")
VENDOR = provider(
    "{backendRef: {name: paid}, api: OpenAI, path: '/serve?v=1',"
    " models: [{name: vendor/gpt, aliases: [m, gpt]}]}",
    "vendor",
)
SIBLING = provider("{backendRef: {name: b}, api: OpenAI, models: [{name: gpt}]}", "sibling")


def policy(rules: str, default: str = "Allow") -> str:
    """Return a PickerPolicy."""
    return document("PickerPolicy", "p", f"{{rules: [{rules}], defaultAction: {default}}}")


async def test_a_pool_of_another_version_is_the_same_pool(tmp_path: Path) -> None:
    """B46: the reason and a metric note it; the decision is the same."""
    pool = pool_of("InferenceWorkerSet/l", name="chat").replace(
        "name: chat,", "name: chat, resourceVersion: '7',"
    )
    async with serve_fleet(tmp_path, LOCAL, VENDOR, pool) as served:
        for version in ("7", "6", "99", ""):
            ref = pb.InferencePoolRef(namespace="default", name="chat", resource_version=version)
            picked = await served.pick(inference_pool=ref)
            assert (picked.outcome, picked.local.endpoint) == (OK, "10.0.0.1:8000")
            assert ("pool_version=skew" in picked.reason) == (version in {"6", "99"})
        page = await served.metrics()
        assert "inferencecache_picker_pool_version_skew_total 2.0" in page


async def test_a_pool_without_a_namespace_is_one_of_the_default_namespace(tmp_path: Path) -> None:
    """B45: and has its own members only."""
    pool = pool_of("InferenceProvider/vendor", name="outside")
    async with serve_fleet(tmp_path, LOCAL, VENDOR, pool) as served:
        assert (await served.pick()).WhichOneof("destination") == "local"
        picked = await served.pick(inference_pool=pb.InferencePoolRef(name="outside"))
        assert picked.WhichOneof("destination") == "provider"
        other = pb.InferencePoolRef(namespace="elsewhere", name="outside")
        picked = await served.pick(inference_pool=other)
        assert (picked.outcome, picked.reason) == (NO_WORKERS, "pool=unknown")


async def test_what_was_picked_before_a_reload_goes_on(tmp_path: Path) -> None:
    """B50: the only worker is gone; new Picks find nobody, the old one is pulled and reported."""
    async with serve_fleet(tmp_path, LOCAL) as served:
        before = await served.pick()
        await served.put()
        after = await served.pick()
        assert (after.outcome, after.reason) == (NO_WORKERS, "model=unknown")
        assert await served.pull(before) == PROMPT
        assert await served.first(before, 200)
        assert await served.final(before)
        assert served.server.picker.plane.decisions.in_flight.total == 0


async def test_a_broken_file_takes_nobody_away(tmp_path: Path) -> None:
    """What is in force stays so until something better comes."""
    async with serve_fleet(tmp_path, LOCAL) as served:
        await served.put("kind: [")
        assert (await served.pick()).local.endpoint == "10.0.0.1:8000"
        await served.put(LOCAL.replace("10.0.0.1", "10.0.0.2"))
        assert (await served.pick()).local.endpoint == "10.0.0.2:8000"


@pytest.mark.parametrize(
    ("reason", "qualifier"),
    [(UNRESOLVED, "BackendUnresolved"), (UNAUTHORIZED, "BackendUnauthorized")],
)
async def test_a_backend_that_does_not_work_shows_and_is_avoided(
    tmp_path: Path, reason: int, qualifier: str
) -> None:
    """E73: at the first report it shows, at the second the provider is left alone."""
    clock = ManualClock(1_700_000_000 * NS_PER_S)
    async with serve_fleet(tmp_path, VENDOR, SIBLING, clock=clock) as served:
        for expected in (f"Accepted,{qualifier}", f"Accepted,{qualifier},Suppressed"):
            picked = await pick_of(served, "paid")
            clock.advance_ns(NS_PER_S)
            assert await served.abort(picked, reason)
            assert await served.states() == {"vendor": expected, "sibling": "Accepted"}
        for _ in range(4):
            assert (await served.pick(gpt())).provider.backend_ref.name == "b"
        page = await served.metrics()
        assert 'inferencecache_picker_suppressed{candidate="provider:default/vendor"}' in page
        clock.advance_ns(6 * NS_PER_S)
        assert await served.first(await pick_of(served, "paid"), 200)
        assert (await served.states())["vendor"] == "Accepted"
        assert "picker_suppressed{candidate" not in await served.metrics()


@pytest.mark.parametrize("overtakes", [False, True])
async def test_a_status_counts_in_whatever_order_reports_come(
    tmp_path: Path, *, overtakes: bool
) -> None:
    """D64, D66: calls may overtake each other; what is acknowledged counts."""
    clock = ManualClock(1_700_000_000 * NS_PER_S)
    async with serve_fleet(tmp_path, VENDOR, SIBLING, clock=clock) as served:
        for _ in range(3):
            picked = await pick_of(served, "paid")
            clock.advance_ns(1)
            calls = [served.first(picked, 503), served.final(picked)]
            for call in reversed(calls) if overtakes else calls:
                assert await call
        assert await served.states() == {"vendor": "Accepted,Suppressed", "sibling": "Accepted"}


async def test_the_same_report_about_a_worker_touches_no_provider(tmp_path: Path) -> None:
    """E74: it is counted, and that is all."""
    async with serve_fleet(tmp_path, LOCAL, VENDOR) as served:
        for reason in (UNRESOLVED, UNAUTHORIZED, UNAUTHORIZED):
            picked = await served.pick()
            assert picked.WhichOneof("destination") == "local"
            assert await served.abort(picked, reason)
        assert await served.states() == {"l": "Accepted", "vendor": "Accepted"}
        assert 'aborts_total{reason="BACKEND_UNAUTHORIZED"} 2.0' in await served.metrics()


@pytest.mark.parametrize(("status", "times"), [(401, 2), (402, 2), (404, 3), (503, 3), (429, 1)])
async def test_the_very_next_pick_goes_elsewhere(tmp_path: Path, status: int, times: int) -> None:
    """D66, F56: as soon as a provider has failed often enough; workers come first throughout."""
    clock = ManualClock(1_700_000_000 * NS_PER_S)
    async with serve_fleet(tmp_path, LOCAL, VENDOR, SIBLING, clock=clock) as served:
        for _ in range(times):
            picked = await pick_of(served, "paid")
            clock.advance_ns(NS_PER_S // 10)
            assert await served.first(picked, status)
        assert (await served.pick(gpt())).provider.backend_ref.name == "b"
        assert (await served.pick()).WhichOneof("destination") == "local"
        clock.advance_ns(7 * NS_PER_S)
        assert (await pick_of(served, "paid")).outcome == OK


async def test_a_bad_request_is_nobodys_failure(tmp_path: Path) -> None:
    """D66: 400 is the client's, however often."""
    async with serve_fleet(tmp_path, VENDOR) as served:
        for status in (400, 413, 422) * 4:
            assert await served.first(await served.pick(gpt()), status)
        assert await served.states() == {"vendor": "Accepted"}


@pytest.mark.parametrize(
    ("rules", "default", "tenant", "expected"),
    [
        ("{tenants: [''], action: Deny}", "Allow", "", REJECTED),
        ("{tenants: [acme], action: Deny}", "Allow", "", OK),
        ("{tenants: [acme], action: Allow}", "Deny", "", REJECTED),
        ("{tenants: [acme], action: Allow}", "Deny", "acme", OK),
        ("{tenants: [acme], action: Deny}, {tenants: [b], action: Deny}", "Allow", "", OK),
    ],
)
async def test_the_empty_tenant_is_a_tenant(
    tmp_path: Path, rules: str, default: str, tenant: str, expected: int
) -> None:
    """G85, G86: rules for it match it, and no rule for another one does."""
    async with serve_fleet(tmp_path, LOCAL, policy(rules, default)) as served:
        picked = await served.pick(tenant=tenant)
        assert picked.outcome == expected
        assert ("policy=team-a/p" in picked.reason) == (expected == REJECTED)


async def test_no_prompt_of_a_tenant_leads_anothers_choice(tmp_path: Path) -> None:
    """G87: the same prompt of another tenant goes where it would have gone anyway."""
    two = worker_set(
        "{models: [{name: m}], endpoints: [{name: a, address: '10.0.0.1:1'},"
        " {name: b, address: '10.0.0.2:1'}]}"
    )
    body = json.dumps({"model": "m", "prompt": "the same prompt " * 100}).encode()
    async with serve_fleet(tmp_path, two) as served:
        first = await served.pick(body, tenant="acme")
        second = await served.pick(body, tenant="other")
        assert {first.local.endpoint, second.local.endpoint} == {"10.0.0.1:1", "10.0.0.2:1"}
        assert "matched=0/" in second.reason
        third = await served.pick(body, tenant="acme")
        assert "matched=384/" in third.reason


async def test_refusals_tell_their_causes_apart(tmp_path: Path) -> None:
    """F55: nobody there, nobody ready, nobody allowed; each has its own outcome or reason."""
    nobody = worker_set("{models: [{name: n}], endpoints: []}", "nobody")
    denied = policy("{tenants: [b], action: Deny}")
    async with serve_fleet(tmp_path, LOCAL, nobody, denied) as served:
        unknown = await served.pick(b'{"model":"other"}')
        empty = await served.pick(b'{"model":"n"}')
        forbidden = await served.pick(tenant="b")
        outcomes = [answer.outcome for answer in (unknown, empty, forbidden)]
        assert outcomes == [NO_WORKERS, NO_WORKERS, REJECTED]
        assert forbidden.reason != unknown.reason


async def test_a_providers_backend_and_path_are_told_as_declared(tmp_path: Path) -> None:
    """H88, H89: its own namespace where it names none; the body has its name for the model."""
    far = provider(
        "{backendRef: {name: far}, api: OpenAI, models: [{name: far/model, aliases: [far]}]}",
        "far",
        namespace="team-b",
    )
    async with serve_fleet(tmp_path, VENDOR, far) as served:
        picked = await served.pick(b'{"model":"gpt","prompt":"x"}')
        assert picked.provider.backend_ref == pb.BackendRef(namespace="default", name="paid")
        assert picked.provider.path == "/serve?v=1"
        assert picked.requested_model == "gpt"
        assert await served.pull(picked) == b'{"model":"vendor/gpt","prompt":"x"}'
        picked = await served.pick(b'{"model":"far","prompt":"x"}')
        assert picked.provider.backend_ref == pb.BackendRef(namespace="team-b", name="far")
        assert picked.provider.path == ""
        assert picked.body_total_bytes == len(await served.pull(picked))


async def test_nothing_secret_is_anywhere(tmp_path: Path) -> None:
    """H90: not the prompt, not a header of the call, not a key that somebody wrote into a file."""
    secret = "sk-very-secret"
    async with serve_fleet(tmp_path, LOCAL, VENDOR) as served:
        body = b'{"model":"gpt","prompt":"%s"}' % secret.encode()
        pushed = await served.stub.PushBody(iter([pb.BodyChunk(chunk=body)]))
        request = pb.PickRequest(body_stream_id=pushed.stream_id, client_request_id="call-1")
        metadata = (("authorization", f"Bearer {secret}"), ("x-api-key", secret))
        picked = await served.stub.Pick(request, metadata=metadata)
        await served.put(VENDOR.replace("api: OpenAI", f"apiKey: {secret}, api: OpenAI"))
        shown = [
            str(picked),
            await served.metrics(),
            json.dumps(await served.page("/debug/decisions")),
            json.dumps(await served.page("/debug/picker/resources")),
        ]
        assert not [text for text in shown if secret in text]


async def test_a_decision_is_explained(tmp_path: Path) -> None:
    """A26: by the caller's name for it, with every candidate and what kept it away."""
    async with serve_fleet(tmp_path, LOCAL, VENDOR) as served:
        await served.pick(client_request_id="another")
        await served.pick(tenant="acme", client_request_id="call-7")
        await served.pick(b"no json", client_request_id="call-8")
        (record,) = (await served.page("/debug/decisions?request_id=call-7"))["decisions"]
        assert (record["outcome"], record["tenant"]) == ("OK", "acme")
        assert record["destination"] == "10.0.0.1:8000"
        names = [(row["name"], row["rank"]) for row in record["explanation"]["candidates"]]
        assert names == [("10.0.0.1:8000", 1), ("provider:default/vendor", 0)]
        everything = (await served.page("/debug/decisions"))["decisions"]
        assert [row["requestId"] for row in everything] == ["call-8", "call-7", "another"]
        assert everything[0]["reason"].startswith("body=malformed")


async def test_a_decision_has_the_name_that_its_upload_gave(tmp_path: Path) -> None:
    """A26: shortened, where the Pick itself gives none."""
    async with serve_fleet(tmp_path, LOCAL) as served:
        metadata = (("kinference-client-request-id", "u" * 10_240),)
        pushed = await served.stub.PushBody(iter([pb.BodyChunk(chunk=PROMPT)]), metadata=metadata)
        await served.stub.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
        (record,) = (await served.page("/debug/decisions"))["decisions"]
        assert record["requestId"] == "u" * 256


async def test_only_the_last_decisions_are_kept(tmp_path: Path) -> None:
    """The page does not grow."""
    settings = replace(PickerSettings(), endpoints="m=10.0.0.9:1")
    async with serve_fleet(tmp_path, picker=settings) as served:
        records = served.server.picker.records
        for number in range(1_010):
            await served.pick(client_request_id=str(number))
        assert len(records) == 1_000
        assert len((await served.page("/debug/decisions"))["decisions"]) == 100
        rows = (await served.page("/debug/decisions?skip=900"))["decisions"]
        assert [row["requestId"] for row in rows] == [str(number) for number in range(109, 9, -1)]
        assert (await served.page("/debug/decisions?skip=1000"))["decisions"] == []


async def test_an_operator_lifts_a_suppression(tmp_path: Path) -> None:
    """By the name that the metric shows; anything else is an error that says what is missing."""
    clock = ManualClock(1_700_000_000 * NS_PER_S)
    async with serve_fleet(tmp_path, VENDOR, clock=clock) as served:
        for _ in range(2):
            picked = await served.pick(gpt())
            clock.advance_ns(NS_PER_S)
            await served.abort(picked, UNAUTHORIZED)
        refused = await served.pick(gpt())
        assert (refused.outcome, refused.reason) == (NO_WORKERS, "candidates=suppressed")
        path = "/picker/unsuppress"
        assert (await served.post(path, b"{}"))[0] == 400
        assert (await served.post(path, b'{"candidate": "provider:default/x"}'))[0] == 404
        status, text = await served.post(path, b'{"candidate": "provider:default/vendor"}')
        assert (status, json.loads(text)) == (200, {"lifted": 1})
        assert (await served.pick(gpt())).outcome == OK
        assert await served.states() == {"vendor": "Accepted"}


async def test_health_waits_for_something_to_go_by(tmp_path: Path) -> None:
    """I95: NOT_SERVING while there is nothing but a mistake, SERVING ever after."""
    async with serve_fleet(tmp_path, "kind: [") as served:
        assert await served.health() == NOT_SERVING
        assert await served.health("inferencecache.v1alpha1.InferenceCache") == SERVING
        assert (await served.pick()).outcome == NO_WORKERS
        await served.put(LOCAL)
        await until_health(served, SERVING)
        await served.put("kind: [")
        await asyncio.sleep(0)
        assert await served.health() == SERVING


async def test_files_without_a_mistake_are_something_to_go_by(tmp_path: Path) -> None:
    """I95: an empty directory is no mistake, and neither is none."""
    async with serve_fleet(tmp_path) as served:
        assert await served.health() == SERVING
        assert (await served.pick()).reason == "model=unknown"


async def test_fixed_endpoints_come_before_files(tmp_path: Path) -> None:
    """For Picks that name no pool; a pool has what it names."""
    settings = PickerSettings(endpoints="m=10.0.0.9:1/other-name")
    pool = pool_of("InferenceWorkerSet/l", name="chat")
    async with serve_fleet(tmp_path, LOCAL, pool, picker=settings) as served:
        picked = await served.pick()
        assert picked.local.endpoint == "10.0.0.9:1"
        assert "tier=fixed" in picked.reason
        assert await served.pull(picked) == PROMPT.replace(b'"m"', b'"other-name"')
        ref = pb.InferencePoolRef(name="chat")
        assert (await served.pick(inference_pool=ref)).local.endpoint == "10.0.0.1:8000"


def gpt() -> bytes:
    """Return a body that only providers can serve."""
    return b'{"model":"gpt","prompt":"x"}'


async def pick_of(served: ServedFleet, backend: str) -> pb.PickResponse:
    """Pick until *backend* is chosen, which takes no more than a few."""
    for _ in range(6):
        picked = await served.pick(gpt())
        if picked.provider.backend_ref.name == backend:
            return picked
    raise AssertionError(f"{backend} is not picked")
