"""The doctor asks the server about what the engine holds."""

import pytest
from examined_engine import ENOUGH, examine, play
from fake_engines import fake_engine
from followed import MODEL, TENANT
from served_engines import producing


@pytest.mark.parametrize(
    ("index_size", "names", "code"),
    [
        (16, {}, "EX001"),
        (32, {}, "EX002"),
        (16, {"model_id": "other"}, "EX003"),
        (16, {"server": "127.0.0.1:1"}, "EX004"),
        (32, {"block_size_tokens": 48}, "EX006"),
    ],
)
async def test_server_is_asked_like_a_gateway_does(
    index_size: int, names: dict[str, object], code: str
) -> None:
    """Names, block sizes and what the server holds are all seen from outside."""
    async with fake_engine() as engine, producing(engine, server_block_size=index_size) as rig:
        await play(engine, "[{do: serve, count: 96}]")
        await rig.settled()
        asked = {"server": rig.server.grpc_target, "tenant_id": TENANT, "model_id": MODEL, **names}
        wait = {"timeout_ns": ENOUGH} if code in {"EX003", "EX006"} else {}

        assert code in await examine(engine, **asked, **wait)


@pytest.mark.parametrize(("count", "code"), [(48, "EX006"), (64, "EX001")])
async def test_prompts_shorter_than_a_hint_are_told_so(count: int, code: str) -> None:
    """Of 48 tokens the server gives no match unless told; the finding names the setting."""
    async with fake_engine() as engine, producing(engine) as rig:
        await play(engine, f"[{{do: serve, count: {count}}}]")
        await rig.settled()
        asked = {"server": rig.server.grpc_target, "tenant_id": TENANT, "model_id": MODEL}
        wait = {"timeout_ns": ENOUGH} if code in {"EX003", "EX006"} else {}
        found = await examine(engine, **asked, **wait)

    assert ("--minimum-matched-tokens" in found[code]) == (code == "EX006")


async def test_server_without_a_prompt_to_ask_about() -> None:
    """What the engine has dropped is not looked for."""
    async with fake_engine() as engine:
        await play(engine, "[{do: serve, count: 96}, {do: evict, blocks: 6}]")

        assert "EX005" in await examine(engine, server="127.0.0.1:1")
