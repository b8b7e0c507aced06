"""Picks go where their prompt is warm, by an index here or in another server, over gRPC."""

import asyncio
import json
import socket
from collections.abc import Sequence
from pathlib import Path

import grpc
import pytest
from certificates import Authority
from fleets import tokens_of
from picker_texts import worker_set
from served_fleet import ServedFleet, serve_fleet

from inferencecache.app.server import Server, running_server
from inferencecache.client import AsyncCacheClient, CacheUpdate, HeldPrefix, ReplicaRef
from inferencecache.clock import NS_PER_MS, NS_PER_S, ManualClock
from inferencecache.errors import ConfigError
from inferencecache.fingerprint import chain
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.picker_prefix import PickerIndexSettings, PickerPrefixSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.settings.tls import TlsSettings

OK, DEGRADED = pb.PickResponse.OK, pb.PickResponse.DEGRADED
NOT_DISPATCHED = 1
BLOCK = 16
A, B, C = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"
PLACES = {"a": A, "b": B, "c": C}


def local_set(*names: str) -> str:
    """Return a worker set whose blocks the index knows."""
    endpoints = ", ".join(f"{{name: {name}, address: '{PLACES[name]}'}}" for name in names)
    return worker_set(
        f"{{models: [{{name: m}}], endpoints: [{endpoints}], blockSizeTokens: {BLOCK}}}", "local"
    )


SET = local_set("a", "b", "c")
PROMPT = list(range(1_000))


def body(token_ids: Sequence[int] = PROMPT, **fields: object) -> bytes:
    """Return a completion of token ids."""
    return json.dumps({"model": "m", "prompt": list(token_ids), **fields}).encode()


async def report(
    target: str,
    replica_id: str,
    token_ids: Sequence[int],
    credentials: grpc.ChannelCredentials | None = None,
) -> None:
    """Let a replica say over gRPC that it holds a prompt."""
    hashes = chain(token_ids, BLOCK)
    held = HeldPrefix(block_hashes=hashes, block_token_counts=[BLOCK] * len(hashes))
    update = CacheUpdate(
        replica=ReplicaRef("t", "m", replica_id), hash_scheme="vllm", prefixes=[held]
    )
    async with (
        AsyncCacheClient(target, credentials=credentials) as client,
        client.reporter() as reporter,
    ):
        await reporter.report(update)
        await reporter.flush()


def facts(picked: pb.PickResponse) -> dict[str, str]:
    """Return the pairs of the reason."""
    return tokens_of(picked.reason)


async def final(
    served: ServedFleet, picked: pb.PickResponse, cached: int, prompt_tokens: int = len(PROMPT)
) -> None:
    """Report the end of an answer."""
    request = pb.ReportFinalTokenRequest(
        response_id=picked.response_id,
        model="m",
        prompt_tokens=prompt_tokens,
        completion_tokens=1,
        cached_tokens=cached,
    )
    await served.stub.ReportFinalToken(request)


async def test_a_pick_goes_to_the_warm_replica(tmp_path: Path) -> None:
    """Reports in, Pick out: the replica that holds most of the prompt, as the reason says."""
    async with serve_fleet(tmp_path, SET) as served:
        for name, held in (("a", PROMPT[:320]), ("b", PROMPT[:960]), ("c", [])):
            await report(served.server.grpc_target, name, held or list(range(9_000, 9_100)))
        for _ in range(3):
            picked = await served.pick(body(), tenant="t")
            assert (picked.outcome, picked.local.endpoint) == (OK, B), picked.reason
            assert facts(picked)["prefix"] == "precise"
            assert facts(picked)["matched"] in {"960/1000", "999/1000"}
            assert await served.abort(picked, NOT_DISPATCHED)


async def test_a_burst_meets_what_was_sent_until_it_is_aborted(tmp_path: Path) -> None:
    """The engines know nothing yet; the picker knows where the prompt went."""
    async with serve_fleet(tmp_path, local_set("a")) as served:
        await report(served.server.grpc_target, "a", list(range(9_000, 9_100)))
        first = await served.pick(body(), tenant="t")
        assert facts(first)["matched"] == "0/1000"
        second = await served.pick(body(), tenant="t")
        assert facts(second)["matched"] == "960/1000"
        for picked in (first, second):
            assert await served.abort(picked, NOT_DISPATCHED)
        third = await served.pick(body(), tenant="t")
        assert (third.outcome, facts(third)["matched"]) == (OK, "0/1000")


async def test_an_upstream_error_leaves_nothing_behind(tmp_path: Path) -> None:
    """A prompt that was answered with 503 was never computed."""
    async with serve_fleet(tmp_path, local_set("a")) as served:
        await report(served.server.grpc_target, "a", list(range(9_000, 9_100)))
        picked = await served.pick(body(), tenant="t")
        await served.first(picked, 503)
        assert facts(await served.pick(body(), tenant="t"))["matched"] == "0/1000"


async def test_a_cold_index_degrades_and_shows(tmp_path: Path) -> None:
    """Until the first report of any of the workers, in the reason, the state and the numbers."""
    async with serve_fleet(tmp_path, SET) as served:
        picked = await served.pick(body(), tenant="t")
        assert (picked.outcome, facts(picked)["degraded"]) == (DEGRADED, "index_cold")
        assert facts(picked)["prefix"] == "approximate"
        assert (await served.states())["local"] == "Accepted,IndexCold"
        page = await served.metrics()
        assert 'inferencecache_picker_prefix_missing_total{why="index_cold"} 1.0' in page
        await report(served.server.grpc_target, "c", PROMPT)
        assert (await served.pick(body(), tenant="t")).outcome == OK
        assert (await served.states())["local"] == "Accepted"


async def test_workers_that_the_index_never_hears_of_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """After a minute, once: their names and what may be wrong."""
    clock = ManualClock(10**18)
    async with serve_fleet(tmp_path, SET, clock=clock) as served:
        await report(served.server.grpc_target, "b", PROMPT)
        clock.advance_ns(60 * NS_PER_S)
        for _ in range(2):
            served.server.prefix.tell_unseen()
        lines = [line.fields for line in caplog.records if line.message == "picker_index_unseen"]
        assert [(line["worker_set"], line["names"]) for line in lines] == [
            ("default/local", "a, c")
        ]


async def test_a_tokenizer_that_is_not_there_degrades_and_shows(tmp_path: Path) -> None:
    """Text cannot be compared without it; token ids can."""
    lost = SET.replace("blockSizeTokens", f"tokenizer: {tmp_path}/lost, blockSizeTokens")
    async with serve_fleet(tmp_path, lost) as served:
        await report(served.server.grpc_target, "a", PROMPT)
        picked = await served.pick(b'{"model": "m", "prompt": "a text"}', tenant="t")
        assert (picked.outcome, facts(picked)["degraded"]) == (DEGRADED, "tokenizer_missing")
        assert (await served.states())["local"] == "Accepted,TokenizerMissing"
        assert (await served.pick(body(), tenant="t")).outcome == OK


async def test_trust_and_error_show_as_numbers(tmp_path: Path) -> None:
    """By worker, as the final report says."""
    async with serve_fleet(tmp_path, SET) as served:
        await report(served.server.grpc_target, "a", PROMPT)
        picked = await served.pick(body(), tenant="t")
        await served.first(picked, 200)
        await final(served, picked, cached=0)
        page = await served.metrics()
        labels = f'{{endpoint="{A}",source="precise"}}'
        assert f"inferencecache_picker_prefix_trust{labels} 0.9" in page
        assert f'inferencecache_picker_cached_tokens_error{{endpoint="{A}"}} -9' in page


async def test_counts_that_cannot_be_true_teach_nothing(tmp_path: Path) -> None:
    """One would show in the error for hundreds of reports; the number of bad reports tells."""
    async with serve_fleet(tmp_path, SET) as served:
        await report(served.server.grpc_target, "a", PROMPT)
        for cached in (0, 2**32 - 1):
            picked = await served.pick(body(), tenant="t")
            await served.first(picked, 200)
            await final(served, picked, cached, prompt_tokens=max(cached, len(PROMPT)))
        page = await served.metrics()
        labels = f'{{endpoint="{A}",source="precise"}}'
        assert f"inferencecache_picker_prefix_trust{labels} 0.9\n" in page
        assert f'inferencecache_picker_cached_tokens_error{{endpoint="{A}"}} -9' in page
        assert 'inferencecache_picker_reports_bad_total{flaw="prompt_tokens"} 1' in page


async def test_the_index_of_another_server_is_asked(tmp_path: Path) -> None:
    """Through LookupRoute, with the same answer, and the same words where it does not know."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    async with serve_fleet(tmp_path / "there") as there:
        index = PickerIndexSettings(address=there.server.grpc_target)
        patient = PickerPrefixSettings(index_timeout_ns=10 * NS_PER_S)
        async with serve_fleet(
            tmp_path / "here", SET, picker_index=index, picker_prefix=patient
        ) as served:
            await report(there.server.grpc_target, "a", PROMPT[:320])
            await report(there.server.grpc_target, "b", PROMPT)
            picked = await served.pick(body(), tenant="t")
            assert (picked.outcome, picked.local.endpoint) == (OK, B), picked.reason
            assert facts(picked)["prefix"] == "precise"
            assert facts(picked)["matched"] == "992/1000"
            other = await served.pick(body(), tenant="u")
            assert (other.outcome, facts(other)["degraded"]) == (DEGRADED, "unknown_tenant")
            assert (await served.states())["local"] == "Accepted"


async def test_another_server_that_has_heard_of_nobody_degrades(tmp_path: Path) -> None:
    """Until anybody has reported under the tenant and the model, whatever it holds."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    async with serve_fleet(tmp_path / "there") as there:
        index = PickerIndexSettings(address=there.server.grpc_target, cold_recheck_ns=NS_PER_MS)
        patient = PickerPrefixSettings(index_timeout_ns=10 * NS_PER_S)
        async with serve_fleet(
            tmp_path / "here", SET, picker_index=index, picker_prefix=patient
        ) as served:
            picked = await served.pick(body(), tenant="t")
            assert (picked.outcome, facts(picked)["degraded"]) == (DEGRADED, "index_cold")
            assert facts(picked)["prefix"] == "approximate"
            await report(there.server.grpc_target, "a", list(range(9_000, 9_100)))
            async with asyncio.timeout(30):
                while (picked := await served.pick(body(), tenant="t")).outcome != OK:
                    assert facts(picked)["degraded"] == "index_cold"
            assert facts(picked)["prefix"] == "precise"


async def test_a_server_that_is_not_there_degrades(tmp_path: Path) -> None:
    """The Pick goes on without it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        index = PickerIndexSettings(address=f"127.0.0.1:{bound.getsockname()[1]}")
        async with serve_fleet(tmp_path, SET, picker_index=index) as served:
            picked = await served.pick(body(), tenant="t")
            assert picked.outcome == DEGRADED
            assert facts(picked)["degraded"] in {"index_unreachable", "index_timeout"}


async def test_the_index_of_another_server_is_asked_over_tls(tmp_path: Path) -> None:
    """By authorities of its own, with a certificate for a server that asks for one."""
    (tmp_path / "here").mkdir()
    authority = Authority()
    cert_file, key_file = authority.server().write(tmp_path)
    ca_file = str(authority.write(tmp_path / "ca.pem"))
    tls = TlsSettings(cert_file=str(cert_file), key_file=str(key_file))
    client_cert, client_key = authority.client("picker").write(tmp_path, "picker")
    credentials = authority.channel_credentials()
    async with running_server(throwaway_server_settings(tls=tls)) as there:
        index = PickerIndexSettings(
            address=there.grpc_target,
            ca_file=ca_file,
            cert_file=str(client_cert),
            key_file=str(client_key),
        )
        patient = PickerPrefixSettings(index_timeout_ns=10 * NS_PER_S)
        async with serve_fleet(
            tmp_path / "here", SET, picker_index=index, picker_prefix=patient
        ) as served:
            await report(there.grpc_target, "c", PROMPT, credentials=credentials)
            picked = await served.pick(body(), tenant="t")
            assert (picked.outcome, picked.local.endpoint) == (OK, C), picked.reason


@pytest.mark.parametrize(
    ("index", "field"),
    [
        (PickerIndexSettings(address="there"), "picker-index-address"),
        (PickerIndexSettings(address="h:1", ca_file="/nowhere"), "picker-index-ca-file"),
        (PickerIndexSettings(address="h:1", key_file="k"), "picker-index-client-cert-file"),
    ],
)
def test_settings_of_another_index_are_checked_at_the_start(
    index: PickerIndexSettings, field: str
) -> None:
    """With the setting that is wrong."""
    with pytest.raises(ConfigError) as refused:
        Server(throwaway_server_settings(picker_index=index))
    assert refused.value.field == field
