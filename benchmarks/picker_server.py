"""The picker under test, with an empty handler beside it; prints its address.

The empty handler takes the same bytes, parses nothing and answers nothing: the difference is what a
Pick costs above gRPC itself. The first argument is which picker, ``plugged`` or ``signalled``, the
second how long its bodies and decisions wait, in milliseconds.
"""

import random
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import uvloop

from benchmarks.messages import EMPTY_SERVICE, as_bytes
from benchmarks.picker_made import SignalledPicker, plugged_picker, ten_kb_chat
from benchmarks.prompt_texts import Texts, write_tokenizer
from benchmarks.server import empty
from benchmarks.workload import SEED
from inferencecache.app.collector import calm_collector
from inferencecache.app.picker import Picker
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.transport.grpc_port import GrpcPort

_RECEIVE_BYTES_MAX = 2 * 1_048_576
_STREAMS_UNLIMITED = 2**31 - 1


async def serve(kind: str, ttl_ms: int) -> None:
    """Serve until the process is terminated.

    Args:
        kind: Which picker.
        ttl_ms: How long bodies and decisions wait.
    """
    async with AsyncExitStack() as stack:
        picker = await _made(kind, ttl_ms, stack)
        handlers = {"Call": grpc.unary_unary_rpc_method_handler(empty, as_bytes, as_bytes)}
        settings = replace(
            throwaway_server_settings().grpc,
            receive_bytes_max=_RECEIVE_BYTES_MAX,
            streams_max=_STREAMS_UNLIMITED,
            compression="none",
        )
        port = GrpcPort(settings, {**picker.services, EMPTY_SERVICE: handlers})
        address = await port.start()
        calm_collector()
        print(address, flush=True)
        await picker.run()


async def _made(kind: str, ttl_ms: int, stack: AsyncExitStack) -> Picker:
    if kind == "plugged":
        return plugged_picker(ttl_ms)
    directory = Path(stack.enter_context(TemporaryDirectory()))
    write_tokenizer(directory, Texts(random.Random(SEED)))
    signalled = SignalledPicker(directory, ttl_ms)
    await signalled.start()
    await signalled.warm(ten_kb_chat())
    stack.push_async_callback(signalled.stop)
    return signalled.picker


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1], int(sys.argv[2])))
