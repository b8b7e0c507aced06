"""Conversations go where engines hold them: template, tokenizer, index and Pick over gRPC."""

import json
from collections.abc import Sequence
from pathlib import Path

from picker_texts import worker_set
from prompt_rig import PATIENT_NS, chat
from served_fleet import ServedFleet, serve_fleet
from small_tokenizers import BOS, EOS, TEXTS, TURN, trained, write_tokenizer
from tokenizing_engine import tokenizing_engine

from inferencecache.client import AsyncCacheClient, CacheUpdate, HeldPrefix, ReplicaRef
from inferencecache.fingerprint import chain
from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.picker_prompt import PickerPromptSettings

OK, DEGRADED = pb.PickResponse.OK, pb.PickResponse.DEGRADED
BLOCK = 16
PATIENT = PickerPromptSettings(timeout_ns=PATIENT_NS)
COLD, WARM = "10.0.0.1:8000", "10.0.0.2:8000"
SYSTEM = " ".join(TEXTS) * 5
QUESTION = json.dumps(chat(("system", SYSTEM), ("user", "and who is warm?"))).encode()
HELD = f"{BOS}{TURN}system\n{SYSTEM}{EOS}{TURN}user\n"


def engines(*fields: str, cold: str = COLD) -> str:
    """Return a worker set with further fields."""
    return worker_set(
        f"{{models: [{{name: m}}], blockSizeTokens: {BLOCK}, endpoints: [{{name: a, address: "
        f"'{cold}'}}, {{name: b, address: '{WARM}'}}], {', '.join(fields)}}}",
        "local",
    )


async def report(served: ServedFleet, replica_id: str, token_ids: Sequence[int]) -> None:
    """Let a replica say that it holds a prompt."""
    hashes = chain(token_ids, BLOCK)
    held = HeldPrefix(block_hashes=hashes, block_token_counts=[BLOCK] * len(hashes))
    update = CacheUpdate(
        replica=ReplicaRef("t", "m", replica_id), hash_scheme="vllm", prefixes=[held]
    )
    async with AsyncCacheClient(served.server.grpc_target) as client, client.reporter() as reporter:
        await reporter.report(update)
        await reporter.flush()


async def warm(served: ServedFleet) -> int:
    """Let one worker hold the system prompt; return how many tokens of it are in whole blocks."""
    token_ids = trained().encode(HELD, add_special_tokens=False).ids
    await report(served, "a", list(range(9_000, 9_100)))
    await report(served, "b", token_ids)
    return len(token_ids) // BLOCK * BLOCK


async def check_warm(served: ServedFleet) -> None:
    """Check that a conversation goes to the worker that holds its beginning."""
    matched = await warm(served)
    picked = await served.pick(QUESTION, tenant="t")

    assert (picked.outcome, picked.local.endpoint) == (OK, WARM), picked.reason
    assert f"prefix=precise;matched={matched}/" in picked.reason


async def test_a_tokenizer_here_finds_who_is_warm(tmp_path: Path) -> None:
    """The worker that holds the system prompt gets the question."""
    write_tokenizer(tmp_path / "tokenizer")
    (tmp_path / "files").mkdir()
    tokenizer = f"tokenizer: '{tmp_path / 'tokenizer'}'"
    async with serve_fleet(tmp_path / "files", engines(tokenizer), picker_prompt=PATIENT) as served:
        await check_warm(served)
        page = await served.metrics()

        assert 'inferencecache_picker_prompts_total{result="local"} 1.0' in page
        assert "inferencecache_picker_tokenizers 1.0" in page


async def test_an_engines_tokenizer_finds_who_is_warm(tmp_path: Path) -> None:
    """Without any here."""
    async with tokenizing_engine(trained()) as engine:
        url = f"tokenizeURL: 'http://{engine.address}/tokenize'"
        async with serve_fleet(tmp_path, engines(url), picker_prompt=PATIENT) as served:
            await check_warm(served)

            assert len(engine.questions) == 1


async def test_a_tokenizer_that_is_missing_degrades_and_shows(tmp_path: Path) -> None:
    """In the reason and in the state; until it is there, characters tell who had the prompt."""
    tokenizer = f"tokenizer: '{tmp_path / 'gone'}'"
    (tmp_path / "files").mkdir()
    async with serve_fleet(tmp_path / "files", engines(tokenizer), picker_prompt=PATIENT) as served:
        await warm(served)
        picked = await served.pick(QUESTION, tenant="t")

        assert picked.outcome == DEGRADED
        assert "degraded=tokenizer_missing" in picked.reason
        assert (await served.states())["local"] == "Accepted,TokenizerMissing"
