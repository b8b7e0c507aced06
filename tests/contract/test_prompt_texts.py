"""Prompt texts of lookups become the tokens that an engine would see."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import grpc
import pytest
from log_lines import LogLines
from prompt_rig import LATER_NS
from small_tokenizers import BOS, EOS, TEXTS, TURN, write_tokenizer

from inferencecache.app.prompt_texts import model_tokenizers
from inferencecache.app.server import running_server
from inferencecache.client import AsyncCacheClient, CacheUpdate, HeldPrefix, ReplicaRef
from inferencecache.clock import ManualClock
from inferencecache.errors import ConfigError
from inferencecache.fingerprint import chain
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.tokenize_models import ModelTokenizers, PromptWork
from inferencecache.v1alpha1 import inferencecache_pb2 as pb
from inferencecache.v1alpha1 import inferencecache_pb2_grpc as pb_grpc

MODEL = "org/small"
TEXT = " ".join(TEXTS)
WRITTEN = f"{BOS}{TURN}user\n{TEXT}{EOS}{TURN}assistant\n"


def loaded(directory: Path, log: LogLines) -> ModelTokenizers | None:
    """Return the tokenizers of a directory."""
    lookup = LookupSettings(tokenizer_models_dir=str(directory))
    return model_tokenizers(lookup, PickerPromptSettings(), ManualClock(LATER_NS), log)


async def tokens_of(work: PromptWork | None) -> list[int]:
    """Return what becomes of a prompt."""
    assert work is not None
    await work.wait(10_000_000_000)
    assert work.is_done()
    return list(work.token_ids())


async def test_a_text_matches_what_an_engine_reported(tmp_path: Path) -> None:
    """One turn of a user through the chat template; the tokens come back to be sent on."""
    tokenizer = write_tokenizer(tmp_path / MODEL)
    token_ids = tokenizer.encode(WRITTEN, add_special_tokens=False).ids
    settings = throwaway_server_settings()
    lookup = replace(settings.lookup, tokenizer_models_dir=str(tmp_path))
    hashes = chain(token_ids, lookup.block_size_tokens)
    counts = [lookup.block_size_tokens] * len(hashes)
    held = HeldPrefix(block_hashes=hashes, block_token_counts=counts)
    update = CacheUpdate(replica=ReplicaRef("t", MODEL, "r"), hash_scheme="vllm", prefixes=[held])
    async with (
        running_server(replace(settings, lookup=lookup)) as server,
        AsyncCacheClient(server.grpc_target) as client,
        client.reporter() as reporter,
        grpc.aio.insecure_channel(server.grpc_target) as channel,
    ):
        await reporter.report(update)
        await reporter.flush()
        stub = pb_grpc.InferenceCacheStub(channel)
        request = pb.LookupRouteRequest(
            tenant_id="t", model_id=MODEL, hash_scheme="vllm", prompt_text=TEXT
        )
        answer = await stub.LookupRoute(request)
        request.model_id = "../org/small"
        other = await stub.LookupRoute(request)

    assert list(answer.token_ids) == token_ids
    assert [score.replica_id for score in answer.replica_scores] == ["r"]
    assert answer.replica_scores[0].matched_tokens == sum(counts)
    assert (list(other.replica_scores), list(other.token_ids)) == ([], [])


async def test_models_are_called_as_their_directories_are(tmp_path: Path) -> None:
    """A model's own directories are no models, nor are hidden ones, nor the root."""
    log = LogLines()
    for name in (MODEL, f"{MODEL}/onnx", "flat", ".hidden/m"):
        write_tokenizer(tmp_path / name)
    write_tokenizer(tmp_path)
    (tmp_path / "org" / "loop").symlink_to(tmp_path, target_is_directory=True)
    tokenizers = loaded(tmp_path, log)

    assert sorted(str(line["model"]) for line in log.of("tokenizer_loaded")) == ["flat", MODEL]
    assert tokenizers is not None
    for name in ("", ".", "org", f"/{MODEL}", f"{MODEL}/", "../flat", f"{tmp_path}/flat"):
        assert tokenizers.start(name, "a") is None
    assert await tokens_of(tokenizers.start("flat", TEXT))
    tokenizers.stop()


async def test_a_model_that_cannot_be_used_is_left_out(tmp_path: Path) -> None:
    """One line says why; the others are there."""
    log = LogLines()
    write_tokenizer(tmp_path / "good")
    write_tokenizer(tmp_path / "bad")
    (tmp_path / "bad" / "tokenizer.json").write_text("{")
    write_tokenizer(tmp_path / "base", chat_template=None)
    tokenizers = loaded(tmp_path, log)

    assert [line["model"] for line in log.of("tokenizer_not_loaded")] == ["bad"]
    assert tokenizers is not None
    assert tokenizers.start("bad", "a") is None
    assert await tokens_of(tokenizers.start("base", "a")) == [], "it has no template"
    assert await tokens_of(tokenizers.start("good", "a"))
    tokenizers.stop()


@pytest.mark.parametrize("name", ["gone", "file"])
def test_a_directory_that_is_none_is_a_wrong_setting(tmp_path: Path, name: str) -> None:
    """The server does not start as if it were set."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="tokenizer-models-dir"):
        loaded(tmp_path / name, LogLines())


def test_without_the_packages_the_setting_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting that does nothing is worse than none."""
    write_tokenizer(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "inferencecache.transport.tokenize_local", None)
    with pytest.raises(ConfigError, match="extra 'tokenizers'"):
        loaded(tmp_path, LogLines())


async def test_a_prompt_that_takes_long_is_waited_for_as_long_as_is_allowed() -> None:
    """And no longer; one that was never begun has no tokens."""
    released = Event()
    with ThreadPoolExecutor(1) as threads:
        work = PromptWork(threads.submit(lambda: (released.wait(), [1, 2])[1]))
        queued = threads.submit(lambda: [3])
        await work.wait(1_000_000)
        assert not work.is_done()
        queued.cancel()
        assert list(PromptWork(queued).token_ids()) == []
        released.set()
        assert await tokens_of(work) == [1, 2]


def test_no_directory_is_no_tokenizer() -> None:
    """Prompt texts fail open then."""
    settings = LookupSettings(), PickerPromptSettings()

    assert model_tokenizers(*settings, ManualClock(), LogLines()) is None
