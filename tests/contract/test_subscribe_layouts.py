"""A whole life in the layout of every release: half of it replayed, half of it live."""

import pytest
from engine_payloads import array_store, old_batch
from engine_sockets import engine_sockets
from followed import MODEL, REPLICA, SCHEME, TENANT, Rig, following, rig
from layout_lives import HELD, Release, block, independent_keys, releases

from inferencecache.types import PartitionKey

_ROOT_OF_SGLANG_0_4 = 5_740_354_900_026_072_187


def held_keys(found: Rig) -> set[int]:
    """Return those of all keys of the life that the server says the replica holds."""
    index = found.server.plane.index
    partition = PartitionKey(TENANT, MODEL, SCHEME, "")
    prompts = [(1, 2, 3), (1, 4), (5, 6), (5, 7)]
    every = {key for prompt in prompts for key in independent_keys(*prompt)}
    return {
        key
        for key in every
        if any(
            name == REPLICA for name, *_ in index.match_exact(partition, key.to_bytes(8, "big"), 0)
        )
    }


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
async def test_every_release_leads_to_the_keys_computed_by_hand(release: Release) -> None:
    """Nothing is missing, nothing is too much."""
    payloads = release.payloads()
    async with engine_sockets() as engine:
        engine.new_shape = release.new_replay
        for payload in payloads[:3]:
            await engine.publish(payload)
        async with following(engine) as found:
            await found.synced()
            for payload in payloads[3:]:
                await engine.publish(payload)
            await found.settled(len(payloads))

            assert held_keys(found) == HELD
            assert found.server.plane.index.entries == len(HELD)


async def test_the_oldest_sglang_leads_to_nothing_rather_than_to_wrong_roots() -> None:
    """Its roots name a parent that is never announced, which no position follows from."""
    async with rig() as found:
        await found.synced()
        for number in (1, 2):
            store = array_store(6, [number], block(number), parent=_ROOT_OF_SGLANG_0_4)
            await found.engine.publish(old_batch(store))
        await found.settled(2)

        assert found.server.plane.index.entries == 0
