"""Calls that the gRPC library ends before the cache plane sees them, as clients are told."""

import gzip

import pytest
from raw_http2 import Headers, framed, raw_client
from served_plane import SERVICE_NAME, serve

from inferencecache.settings.grpc import GrpcSettings
from inferencecache.v1alpha1 import inferencecache_pb2 as pb

METHODS = ["LookupRoute", "GetCacheState", "ReportCacheState"]
INTERNAL, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = "13", "4", "8"


def compressed(message: bytes) -> bytes:
    """Return *message* as gRPC frames it when it is compressed."""
    data = gzip.compress(message)
    return b"\1" + len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("headers", "data"),
    [
        ((), b"\1\0\0\0\1x"),
        ((("grpc-encoding", "gzip"),), b"\1\0\0\0\1x"),
        ((("grpc-encoding", "br"),), b"\1\0\0\0\1x"),
        ((("grpc-timeout", "xx"),), framed(b"")),
    ],
    ids=["no-encoding", "no-gzip", "unknown-encoding", "no-timeout"],
)
@pytest.mark.parametrize("method", METHODS)
async def test_broken_framing_is_refused_before_the_plane(
    method: str, headers: Headers, data: bytes
) -> None:
    """INTERNAL from the library; the plane has counted, failed and logged nothing."""
    async with serve() as served, raw_client(served.target) as client:
        call = await client.open(f"/{SERVICE_NAME}/{method}", headers)
        await client.send(call, data, end=True)
        assert (await client.answer(call)).status == INTERNAL
        assert not served.recorder.lookups
        assert not served.recorder.unparsable
        assert not served.recorder.failures
        assert not served.recorder.lines


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("is_compressed", [False, True])
async def test_a_message_above_the_limit_is_refused_before_the_plane(
    method: str,
    is_compressed: bool,  # noqa: FBT001 - a case
) -> None:
    """RESOURCE_EXHAUSTED, also where only what it decompresses to is too long."""
    settings = GrpcSettings(bind_address="127.0.0.1:0", receive_bytes_max=1_024)
    message = pb.GetCacheStateRequest(model_id="m" * 1_024).SerializeToString()
    headers = (("grpc-encoding", "gzip"),) if is_compressed else ()
    async with serve(settings=settings) as served, raw_client(served.target) as client:
        call = await client.open(f"/{SERVICE_NAME}/{method}", headers)
        await client.send(call, (compressed if is_compressed else framed)(message), end=True)
        assert (await client.answer(call)).status == RESOURCE_EXHAUSTED
        assert not served.recorder.lookups
        assert not served.recorder.failures


@pytest.mark.parametrize("cut", [b"", b"\0\0\0\0\5x"], ids=["no-message", "half"])
@pytest.mark.parametrize("method", ["LookupRoute", "GetCacheState"])
async def test_a_call_without_its_message_is_ended_by_its_deadline(method: str, cut: bytes) -> None:
    """A known limit of the library; others are answered meanwhile."""
    path = f"/{SERVICE_NAME}/{method}"
    async with serve() as served, raw_client(served.target) as client:
        silent = await client.open(path)
        timed = await client.open(path, (("grpc-timeout", "50m"),))
        for call in (silent, timed):
            await client.send(call, cut, end=True)
        assert (await client.answer(timed)).status == DEADLINE_EXCEEDED
        whole = await client.open(path)
        await client.send(whole, framed(b""), end=True)
        assert (await client.answer(whole)).status == "0"
        assert not silent.is_over
        assert not served.recorder.failures
