"""What a server needs in memory: per block, per further replica, per tenant, and as a whole.

Each row is the growth of the resident set of a fresh process that builds one thing, divided by how
many of it were built. Long chains are the good case; runs of one block, of which each is a chain of
its own, are the worst. Seed: ``workload.SEED``. Budget: about a minute.
"""

import gc
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.options import Options
from benchmarks.row import Row
from benchmarks.workload import (
    CHAIN_BLOCKS,
    MODEL,
    SCHEME,
    SEED,
    START_NS,
    TENANT,
    Chain,
    FixedRules,
    chain_update,
    chains,
    evicted,
    new_index,
)
from inferencecache.index import PrefixIndex, StateUpdate
from inferencecache.settings.index import IndexSettings
from inferencecache.types import StatsReport

FLEET_REPLICAS: Final = 64
FLEET_BLOCKS: Final = 31_250
"""Blocks that each replica of the sample fleet holds: a sixteenth of half a million."""

FLEET_SHARED: Final = 1 / 4
"""Share of them that all replicas hold."""

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Built:
    """What was built between two looks at the resident set.

    Attributes:
        count: How many of what the row counts.
        kept: Holds it until the second look.
    """

    count: int
    kept: object


Build = Callable[[int], Built]
"""Builds something of so many blocks."""


def run(options: Options) -> Iterator[Row]:
    """Yield bytes per block, per entry, per tenant and per replica, and the empty server."""
    blocks = options.blocks_max
    for name, (what, unit) in _ROWS.items():
        value = _measure(name, blocks // _FEWER if name in _SLOW else blocks)
        yield Row(what=what.format(blocks=f"{blocks // 1_000:,} k"), unit=unit, value=value)
    yield Row(what="an empty server, all of its process", unit="MiB", value=_empty_server_mib())


def _measure(name: str, blocks: int) -> float:
    """Return bytes per thing built, measured in a new process."""
    command = [sys.executable, "-m", "benchmarks.sizing", name, str(blocks)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(output))


def _growth(build: Build, blocks: int) -> float:
    """Return the bytes that *build* took per thing, in this process."""
    build(CHAIN_BLOCKS)
    before = _resident_bytes()
    built = build(blocks)
    return (_resident_bytes() - before) / built.count


class _Quota(FixedRules):
    """A quota that is never reached; runs are kept in order of age for it."""

    def quota(self, tenant_id: str) -> int | None:  # noqa: ARG002 - the protocol's signature
        """Return the quota."""
        return 2**40


def _in_chains(length: int, rules: FixedRules | None = None) -> Build:
    """Return a build of chains of *length* blocks, one holder each."""

    def build(blocks: int) -> Built:
        index = PrefixIndex(IndexSettings(entries_max=0), rules or FixedRules())
        for chain in chains(blocks // length, length):
            index.report(chain_update("replica-0", chain), START_NS)
        return Built(blocks // length * length, index)

    return build


def _after_churn(blocks: int) -> Built:
    """Build an index at its cap whose content was replaced twice.

    Half of the chains begin like others; each time one arrives, another replica reports a part of
    one of the last 200 again, and its holder evicts two blocks of it, the last and any other.
    """
    rng = random.Random(SEED)
    index = new_index(blocks)
    for number in range(3 * blocks // CHAIN_BLOCKS):
        now_ns = START_NS + number
        index.report(chain_update(_holder(number), _used_chain(number)), now_ns)
        earlier = rng.randrange(max(0, number - 200), number + 1)
        chain = _used_chain(earlier)
        part = chain[: rng.randrange(1, CHAIN_BLOCKS)]
        index.report(chain_update(f"replica-{rng.randrange(8)}", part), now_ns)
        for position in (CHAIN_BLOCKS - 1, rng.randrange(CHAIN_BLOCKS)):
            index.apply(evicted(_holder(earlier), chain[position]), now_ns)
    return Built(index.prefixes, index)


def _holder(number: int) -> str:
    return f"replica-{number % 8}"


def _used_chain(number: int) -> Chain:
    """Return a chain by its number: made again when needed, so that none is kept."""
    own = next(chains(1, seed=SEED + number))
    return next(chains(1, seed=number % 8))[:64] + own[64:] if number % 2 else own


def _fleet(blocks: int) -> Built:
    """Build the sample fleet; counts entries."""
    index = new_index()
    per_replica = FLEET_BLOCKS if blocks > CHAIN_BLOCKS else CHAIN_BLOCKS
    whole = max(1, per_replica // CHAIN_BLOCKS)
    shared = list(chains(round(whole * FLEET_SHARED), seed=1))
    for replica in range(FLEET_REPLICAS):
        for chain in (*shared, *chains(whole - len(shared), seed=2 + replica)):
            index.report(chain_update(f"replica-{replica}", chain), START_NS + replica)
    return Built(index.entries, index)


def _tenants(blocks: int) -> Built:
    """Build tenants of one block each."""
    index = new_index()
    count = blocks // 50
    for number, chain in enumerate(chains(count, 1)):
        index.report(_single(f"tenant-{number}", MODEL, "", chain[0]), START_NS)
    return Built(count, index)


def _partitions(blocks: int) -> Built:
    """Build adapters of one model, of one block each."""
    index = new_index()
    count = blocks // 50
    for number, chain in enumerate(chains(count, 1)):
        index.report(_single(TENANT, MODEL, f"adapter-{number}", chain[0]), START_NS)
    return Built(count, index)


def _statistics(blocks: int) -> Built:
    """Build replicas that have reported statistics and nothing else."""
    index = new_index()
    count = blocks // 50
    for number in range(count):
        update = StateUpdate(
            tenant_id=TENANT, model_id=MODEL, replica_id=f"replica-{number}", hash_scheme=SCHEME
        )
        update.stats = StatsReport(hit_rate=0.5, pressure=0.25)
        index.report(update, START_NS)
    return Built(count, index)


def _single(tenant_id: str, model_id: str, adapter_id: str, block_hash: bytes) -> StateUpdate:
    update = StateUpdate(
        tenant_id=tenant_id,
        model_id=model_id,
        replica_id="replica-0",
        hash_scheme=SCHEME,
        adapter_id=adapter_id,
    )
    update.add_chain([block_hash], [16])
    return update


class _Twice:
    """What a second replica adds to chains that a first one holds."""

    def __init__(self, length: int) -> None:
        self._length = length

    def __call__(self, blocks: int) -> float:
        """Return bytes per block of the second replica."""
        index = new_index()
        count = blocks // self._length
        for chain in chains(count, self._length):
            index.report(chain_update("replica-0", chain), START_NS)
        before = _resident_bytes()
        for chain in chains(count, self._length):
            index.report(chain_update("replica-1", chain), START_NS + 1)
        return (_resident_bytes() - before) / (count * self._length)


_BUILDS: Final[dict[str, Build]] = {
    "long": _in_chains(CHAIN_BLOCKS),
    "grown": lambda blocks: _in_chains(CHAIN_BLOCKS)(blocks * 145 // 100),
    "medium": _in_chains(32),
    "short": _in_chains(4),
    "single": _in_chains(1),
    "single-quota": _in_chains(1, _Quota()),
    "churned": _after_churn,
    "fleet": _fleet,
    "tenants": _tenants,
    "partitions": _partitions,
    "statistics": _statistics,
}
_SECOND: Final = {"long-second": _Twice(CHAIN_BLOCKS), "single-second": _Twice(1)}
_ROWS: Final = {
    "long": ("chains of 512 blocks, one replica, {blocks} blocks", "B/block"),
    "grown": ("... of 1.45 times as many blocks, the tables just having grown", "B/block"),
    "churned": ("... after twice as many have come and gone", "B/block"),
    "medium": ("chains of 32 blocks", "B/block"),
    "short": ("chains of 4 blocks", "B/block"),
    "single": ("chains of 1 block, the worst case", "B/block"),
    "single-quota": ("... of a tenant with a quota", "B/block"),
    "long-second": ("a further replica on chains of 512 blocks", "B/block"),
    "single-second": ("a further replica on chains of 1 block", "B/block"),
    "fleet": (f"{FLEET_REPLICAS} replicas, a quarter held by all, the rest by one", "B/entry"),
    "tenants": ("a tenant with one block", "B/tenant"),
    "partitions": ("an adapter with one block", "B/adapter"),
    "statistics": ("a replica's statistics", "B/replica"),
}


_SLOW: Final = frozenset({"churned", "short", "single", "single-quota", "single-second"})
"""Rows whose building takes long; their tables are as full at a quarter of the size."""

_FEWER: Final = 4


def _empty_server_mib() -> float:
    """Return the resident set of a server that has just started."""
    command = [sys.executable, "-m", "inferencecache", "serve", "--insecure-disable-auth"]
    command += [f"--{name}-bind-address=127.0.0.1:0" for name in ("grpc", "http", "snapshot")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None  # noqa: S101 - it was asked for
        for line in process.stderr:
            if json.loads(line)["msg"] == "startup":
                break
        resident = _resident_bytes(process.pid)
        process.terminate()
    return resident / _MIB


def _resident_bytes(process_id: int | None = None) -> int:
    gc.collect()
    page = Path(f"/proc/{process_id or os.getpid()}/statm").read_text(encoding="utf-8")
    return int(page.split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    wanted, size = sys.argv[1], int(sys.argv[2])
    print(
        json.dumps(_SECOND[wanted](size) if wanted in _SECOND else _growth(_BUILDS[wanted], size))
    )
