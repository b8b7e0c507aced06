"""An engine whose host vanishes says no goodbye, so the kernel asks whether it is still there."""

import asyncio
import sys
from pathlib import Path

import pytest
from followed import LIMIT_S, rig

from inferencecache.clock import NS_PER_S
from inferencecache.transport.zmq_socket import keepalive_s

KEEPALIVE_RUNS = "02"


def timer_of(remote_port: int) -> set[str]:
    """Return which timers run on this machine's connections to *remote_port* on loopback."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    lines += [line.split() for line in Path("/proc/net/tcp6").read_text("ascii").splitlines()[1:]]
    return {
        fields[5].partition(":")[0]
        for fields in lines
        if int(fields[2].rpartition(":")[2], 16) == remote_port
    }


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's table of connections")
async def test_the_kernel_probes_a_quiet_engine() -> None:
    """The timer of the subscription is the one for probes."""
    async with rig() as found:
        await found.synced()

        async with asyncio.timeout(LIMIT_S):
            # While something sent is not confirmed yet, the connection has another timer.
            while KEEPALIVE_RUNS not in timer_of(found.engine.port):
                await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("after_s", "idle_s", "interval_s"), [(60, 30, 8), (5, 2, 1), (8, 4, 1), (3_600, 1_800, 450)]
)
def test_half_of_the_time_is_idleness(after_s: int, idle_s: int, interval_s: int) -> None:
    """The other half is four probes, in whole seconds."""
    assert keepalive_s(after_s * NS_PER_S) == (idle_s, interval_s)
