"""Hand a body out, at the pace of whoever reads it."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc

from inferencecache.picker.bodies import Body
from inferencecache.picker.faults import CutPullError
from inferencecache.service.pick import PickPlane
from inferencecache.transport.picker_chunk import OutgoingChunk

Context = grpc.aio.ServicerContext[Any, Any]


async def send_body(
    plane: PickPlane, body: Body, context: Context, chunk_bytes: int
) -> AsyncIterator[OutgoingChunk]:
    """Yield *body* in chunks and release it, however the call ends.

    Args:
        plane: Where it belongs.
        body: Given to this call.
        context: The call.
        chunk_bytes: Largest chunk.

    Raises:
        CutPullError: Somebody else has released it before its end.
    """
    pieces = body.content.pieces(chunk_bytes)
    body.on_release = pieces.close
    # A generator that nobody reads to its end is closed some time; the callback is sooner.
    let_go = partial(_let_go, plane, body)
    context.add_done_callback(let_go)  # type: ignore[arg-type] # the stub wants its own class
    left = body.content.length
    try:
        for piece in pieces:
            left -= len(piece)
            yield OutgoingChunk(piece)
        if left:
            raise CutPullError
    finally:
        let_go()


def _let_go(plane: PickPlane, body: Body, _call: Context | None = None) -> None:
    body.on_release = None
    plane.bodies.release(body)
