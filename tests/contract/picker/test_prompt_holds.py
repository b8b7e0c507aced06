"""Nobody waits while the prompt of a hostile body is looked at."""

import asyncio
from pathlib import Path

import pytest
from picker_texts import worker_set
from served_fleet import ServedFleet, serve_fleet
from served_picker import MIB, messages

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.settings.picker_prompt import PickerPromptSettings

SET = worker_set("{models: [{name: m}], endpoints: [{name: a, address: '10.0.0.1:80'}]}")
ROOM = PickerPromptSettings().body_bytes_max - MIB // 8
LONG_TEXT = b'{"model":"m","prompt":"%b"}' % (b"x" * 2 * MIB)
LONGEST_WAIT_S = 0.25

PROMPTS = {
    "prompts": (b'{"model":"m","prompt":[%b[]]}', b"[],"),
    "turns": (b'{"model":"m","messages":[%b[]]}', b"[],"),
    "parts": (b'{"model":"m","messages":[{"role":"user","content":[%b{}]}]}', b"{},"),
    "texts": (b'{"model":"m","messages":[%b"a"]}', b'"a",'),
    "input": (b'{"model":"m","instructions":"x","input":[%b{}]}', b"{},"),
}


async def waits_for_health(served: ServedFleet, body: bytes) -> list[float]:
    """Return how long each health check took while a Pick for *body* was under way, in seconds."""
    chunks = [body[start : start + MIB] for start in range(0, len(body), MIB)]
    pushed = await served.stub.PushBody(messages(chunks))
    picking = asyncio.ensure_future(
        served.stub.Pick(pb.PickRequest(body_stream_id=pushed.stream_id))
    )
    clock = asyncio.get_running_loop().time
    waits = []
    while not picking.done():
        before = clock()
        await served.health()
        waits.append(clock() - before)
    assert (await picking).outcome in {pb.PickResponse.OK, pb.PickResponse.DEGRADED}
    return waits


@pytest.mark.long
@pytest.mark.parametrize("name", PROMPTS)
async def test_health_is_answered_while_a_prompt_of_many_values_is_read(
    tmp_path: Path, name: str
) -> None:
    """It is as long as a body may be whose prompt is looked at."""
    around, value = PROMPTS[name]
    async with serve_fleet(tmp_path, SET) as served:
        await waits_for_health(served, LONG_TEXT)  # starts the process that reads
        waits = await waits_for_health(served, around % (value * (ROOM // len(value))))
    assert max(waits) < LONGEST_WAIT_S
