"""Policies change one after the other, whole, and without holding up the event loop."""

import asyncio
import json

import pytest
from log_lines import LogLines

from inferencecache.policy import (
    CachePolicy,
    PolicyLayer,
    PolicyLayers,
    PolicyPushError,
    PolicySnapshot,
    PolicyStore,
)
from inferencecache.settings.policy import PolicySettings
from inferencecache.transport.policy_changes import PolicyChanges, PushResult


class Bench:
    """Changes over an empty store."""

    def __init__(self) -> None:
        self.log = LogLines()
        self.store = PolicyStore(PolicySettings(), 1)
        self.layers = PolicyLayers(self.store)
        self.changes = PolicyChanges(self.layers, PolicySettings(), self.log)


def body(*namespaces: str, minimum: int = 1) -> bytes:
    """Return a push of one policy per namespace."""
    policies = [{"namespace": name, "minimumPrefixTokens": minimum} for name in namespaces]
    return json.dumps({"version": 7, "policies": policies}).encode()


async def test_pushes_take_effect_in_the_order_they_came() -> None:
    """The last one to arrive is the last word, however long each takes."""
    bench = Bench()
    many = [f"t{number}" for number in range(500)]
    pushes = [bench.changes.push(body(*many, minimum=number)) for number in range(1, 6)]
    await asyncio.gather(*pushes)
    assert bench.store.resolved("t0").minimum_prefix_tokens == 5
    assert bench.changes.pushes[PushResult.REPLACED] == 5


async def test_a_rejected_push_changes_nothing_and_is_not_remembered() -> None:
    """After it, the last accepted body is still the same one."""
    bench = Bench()
    await bench.changes.push(body("a"))
    with pytest.raises(PolicyPushError):
        await bench.changes.push(body("b") + b"x")
    await bench.changes.push(body("a"))
    assert bench.store.revision == 1
    assert bench.changes.pushes == {"replaced": 1, "unchanged": 1, "rejected": 1}


def log_of(*counts: int, event: str = "policy_push_applied", level: str = "info") -> object:
    """Return a line of the log: policies and quotas that are stored, and that were removed."""
    names = ("policies", "quotas", "policies_removed", "quotas_removed")
    return level, event, dict(zip(names, counts, strict=True))


async def test_the_log_says_what_is_stored_not_what_was_sent() -> None:
    """Nameless ones are dropped, and of two for one tenant there is one."""
    bench = Bench()
    await bench.changes.push(body(""))
    await bench.changes.push(body("a", "a", "b", ""))
    quotas = [{"tenantID": name, "maxIndexEntries": 1} for name in ("", "a", "a")]
    await bench.changes.push(json.dumps({"version": 7, "tenants": quotas}).encode())
    assert bench.log.lines == [log_of(0, 0, 0, 0), log_of(2, 0, 0, 0), log_of(0, 1, 2, 0)]


@pytest.mark.parametrize("empty", [b'{"version": 7}', body(""), body()])
async def test_only_a_push_that_takes_everything_away_is_warned_of(empty: bytes) -> None:
    """One that finds nothing to take is like any other."""
    bench = Bench()
    await bench.changes.push(empty)
    await bench.changes.push(body("a", "b"))
    await bench.changes.push(empty)
    await bench.changes.push(b" " + empty)
    warning = log_of(0, 0, 2, 0, event="policy_push_empty", level="warning")
    nothing = log_of(0, 0, 0, 0)
    assert bench.log.lines == [nothing, log_of(2, 0, 0, 0), warning, nothing]


async def test_layers_do_not_lose_one_another() -> None:
    """A file that changes on the loop while a push is being worked out counts, as does the push."""
    bench = Bench()
    push = asyncio.create_task(bench.changes.push(body(*(f"t{n}" for n in range(2_000)))))
    while not push.done():
        await asyncio.sleep(0)
        snapshot = PolicySnapshot(policies=(CachePolicy(namespace="from-file"),))
        bench.layers.replace(PolicyLayer.FILES, snapshot)
        if bench.store.revision == 1:
            break
    await push
    rows = {row.tenant_id: row.in_force for row in bench.layers.view().policies}
    assert (rows["from-file"], rows["t0"]) == (PolicyLayer.FILES, PolicyLayer.PUSH)


async def test_a_layer_can_be_replaced_like_a_push() -> None:
    """Whoever has a snapshot of its own waits in the same line."""
    bench = Bench()
    snapshot = PolicySnapshot(policies=(CachePolicy(namespace="a"),))
    await bench.changes.replace(PolicyLayer.FILES, snapshot)
    removed = await bench.changes.replace(PolicyLayer.FILES, PolicySnapshot())
    assert removed.policies_removed == 1
    bench.changes.close()


async def test_a_megabyte_of_policies_leaves_the_loop_its_turns() -> None:
    """While a push is read and resolved, the loop goes round many times."""
    bench = Bench()
    rounds = 0
    largest = body(*(f"tenant-{number:05}" for number in range(17_000)))
    assert 900_000 < len(largest) <= 1_048_576
    push = asyncio.create_task(bench.changes.push(largest))
    while not push.done():
        await asyncio.sleep(0)
        rounds += 1
    await push
    assert bench.store.resolved("tenant-16999").minimum_prefix_tokens == 1
    assert rounds > 20
