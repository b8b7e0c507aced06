"""Hand a body out, at the pace of whoever reads it."""

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
) -> OutgoingChunk:
    """Write all chunks of *body* but the last, return that, and release *body* after the call.

    Its bytes are charged until the library has sent the last of them: a caller that reads slowly
    holds them there, too.

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
    let_go = partial(_let_go, plane, body)
    context.add_done_callback(let_go)  # type: ignore[arg-type] # the stub wants its own class
    left = body.content.length
    for piece in pieces:
        left -= len(piece)
        if not left:
            return OutgoingChunk(piece)
        await context.write(OutgoingChunk(piece).SerializeToString())
    raise CutPullError


def _let_go(plane: PickPlane, body: Body, _call: Context) -> None:
    body.on_release = None
    plane.bodies.release(body)
