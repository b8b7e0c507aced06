"""A producer on real sockets: what events mean, from payload bytes to lookups of a real server."""

import asyncio
from collections.abc import Iterator

import pytest
from engine_payloads import T16, array_store, batch, layouts, map_clear, map_remove, map_store
from engine_sockets import engine_sockets, two_ranks
from followed import (
    LIMIT_S,
    REPLICA,
    Lines,
    Rig,
    held,
    matched,
    producer_settings,
    rig,
    source,
)
from msgpack_bytes import NIL, TRUE, array, binary, integer, text

from inferencecache.app.producer import running_producer
from inferencecache.app.server import running_server
from inferencecache.clock import NS_PER_MS
from inferencecache.events import EventBatch
from inferencecache.fingerprint import chain
from inferencecache.settings.producer import MapperSettings
from inferencecache.settings.throwaway import throwaway_server_settings
from inferencecache.types import CacheTier

P4 = list(range(1, 65))
LEFT_OVER = {"mixed layouts"}
UNSIGNED = 2**64 - 5
TAIL8 = UNSIGNED.to_bytes(8, "big")
FORMS = {
    "unsigned": integer(UNSIGNED),
    "negative twin": integer(-5),
    "8 bytes": binary(TAIL8),
    "16 bytes": binary(b"\x11" * 8 + TAIL8),
    "32 bytes": binary(b"\x22" * 24 + TAIL8),
}


async def publish(found: Rig, *payloads: bytes) -> None:
    """Publish *payloads* to a fresh producer and wait until all is delivered."""
    await found.synced()
    for payload in payloads:
        await found.engine.publish(payload)
    await found.settled(len(payloads))


@pytest.mark.parametrize("name", sorted(layouts().keys() - LEFT_OVER))
async def test_every_layout_makes_the_same_key(name: str) -> None:
    """Whatever the release, the same tokens are found under the same key."""
    async with rig() as found:
        await publish(found, layouts()[name])

        assert held(found.server, T16) == (16, CacheTier.T1)


@pytest.mark.parametrize("stored", FORMS)
async def test_hashes_meet_whatever_form_they_have(stored: str) -> None:
    """A block stored under one form is one block under every other: copy, parent and removal."""
    async with rig() as found:
        await found.synced()
        for number, form in enumerate(FORMS.values()):
            first = map_store([], P4[:16], block_hashes=array([FORMS[stored]]))
            copy = map_store([], P4[:16], block_hashes=array([form]))
            child = map_store([7], P4[16:32], parent_block_hash=form)
            remove = map_remove([], block_hashes=array([form]))
            await found.engine.publish(batch(first, copy, child, remove))
            await found.settled(2 * number + 1)
            assert found.matched(P4) == 32
            await found.engine.publish(batch(remove, map_remove([7])))
            await found.settled(2 * number + 2)

            assert found.server.plane.index.entries == 0


async def test_a_child_of_an_unknown_parent_is_never_a_prompt_of_its_own() -> None:
    """The suffix alone is no key, neither now nor when it is asked for by itself."""
    async with rig() as found:
        await publish(found, batch(map_store([2], P4[16:32], parent=99)))

        assert found.matched(P4[16:32]) == 0
        assert found.matched(P4) == 0


async def test_a_child_that_comes_before_its_root_is_placed_later() -> None:
    """Blocks wait for their parent and then have the key of the whole chain."""
    async with rig() as found:
        await publish(
            found, batch(map_store([2], P4[16:32], parent=1)), batch(map_store([1], P4[:16]))
        )

        assert found.matched(P4) == 32


async def test_the_second_copy_keeps_the_key_until_it_goes_too() -> None:
    """Two stores and one removal leave the key, the second removal takes it."""
    async with rig() as found:
        store, remove = batch(map_store([1], T16)), batch(map_remove([1]))
        await publish(found, store, store, remove)
        assert found.matched(T16) == 16
        await found.engine.publish(remove)
        await found.settled(4)

        assert found.matched(T16) == 0


async def test_a_key_follows_its_mediums_from_tier_to_tier() -> None:
    """On the GPU T1, on the CPU alone T2, nowhere gone."""
    cpu = map_store([1], [], size=0, medium=text("CPU"))
    async with rig() as found:
        await publish(found, batch(map_store([1], T16)), batch(cpu))
        assert held(found.server, T16) == (16, CacheTier.T1)
        await found.engine.publish(batch(map_remove([1])))
        await found.settled(3)
        assert held(found.server, T16) == (16, CacheTier.T2)
        await found.engine.publish(batch(map_remove([1], medium="CPU")))
        await found.settled(4)

        assert found.matched(T16) == 0


async def test_a_placeholder_beside_a_good_store_costs_only_itself() -> None:
    """A store without tokens of an unknown block is ignored."""
    placeholder = map_store([9], [], size=0, medium=text("CPU"))
    async with rig() as found:
        await publish(found, batch(placeholder, map_store([1], T16)))

        assert found.matched(T16) == 16


async def test_a_removal_in_one_group_leaves_the_other_group_s_copy() -> None:
    """The same hash in two groups is two blocks with one key."""
    full = text("full_attention")
    groups = [map_store([1], T16, group_idx=integer(n), kv_cache_spec_kind=full) for n in (0, 1)]
    async with rig() as found:
        await publish(found, batch(*groups), batch(map_remove([1], group_idx=integer(1))))

        assert found.matched(T16) == 16


async def test_salted_blocks_and_what_follows_them_are_never_found() -> None:
    """Content that tokens do not describe has no key, and neither has a child of it."""
    salted = map_store([1], T16, extra_keys=array([array([text("salt")])]))
    async with rig() as found:
        await publish(found, batch(salted), batch(map_store([2], P4[:16], parent=1)))

        assert found.matched([*T16, *P4[:16]]) == 0


async def test_adapters_are_partitions_named_by_the_map() -> None:
    """A mapped number has its own partition, others are dropped, true and texts are malformed."""
    prompts = [list(range(start, start + 16)) for start in range(1000, 1050, 10)]
    ids = (integer(7), integer(8), NIL, TRUE, text("x"))
    events = [
        map_store([number], prompt, lora_id=lora)
        for number, (prompt, lora) in enumerate(zip(prompts, ids, strict=True))
    ]
    async with rig(mapper=MapperSettings(lora_adapter_names="7=sql")) as found:
        await publish(found, batch(*events))

        assert found.matched(prompts[0], adapter_id="sql") == 16
        assert [found.matched(prompt) for prompt in prompts] == [0, 0, 16, 0, 0]


async def test_sixteen_pages_of_one_token_make_one_key_and_branches_share_pages() -> None:
    """Pages assemble; a branch at page 9 keeps the first eight."""

    def pages(first: int, parent: int | None, tokens: list[int]) -> bytes:
        return array_store(
            7, list(range(first, first + len(tokens))), tokens, parent=parent, size=1
        )

    branch = [*T16[:8], *range(5000, 5008)]
    async with rig() as found:
        await publish(found, batch(pages(1, None, T16)), batch(pages(100, 8, branch[8:])))

        assert found.matched(T16) == 16
        assert found.matched(branch) == 16


async def test_larger_blocks_are_cut_and_unfit_ones_refused() -> None:
    """One block of 64 becomes four keys of 16; blocks of 24 fit nothing and are named once."""
    odd = list(range(9000, 9024))
    async with rig() as found:
        await publish(
            found,
            batch(map_store([1], P4, size=64)),
            batch(map_store([2], odd, size=24)),
            batch(map_store([3], odd, size=24), map_store([4], odd, size=24)),
        )

        assert found.matched(P4) == 64
        assert found.matched(odd) == 0
        assert found.server.plane.index.entries == 4
    assert found.log.fields_of("block_size_refused") == [
        {"replica": REPLICA, "engine_block_size": 24, "block_size": 16}
    ]


async def test_blocks_smaller_than_earlier_ones_are_named_once_per_size() -> None:
    """One store of larger blocks puts an end to the smaller ones, until a clear; that is said."""
    async with rig(replay=False) as found:
        await found.synced()
        await found.engine.publish(batch(map_store([1], T16)))
        await found.engine.publish(batch(map_store([2], P4[:32], size=32)))
        for number in (3, 4):
            await found.engine.publish(batch(map_store([number], P4[48:])))
        await found.settled(4)
        assert found.matched(P4[48:]) == 0
        await found.engine.publish(batch(map_clear(), map_store([5], P4[48:])))
        await found.settled(5)

        assert found.matched(P4[48:]) == 16
    assert found.log.fields_of("smaller_blocks_dropped") == [
        {"replica": REPLICA, "engine_block_size": 16, "usual_block_size": 32}
    ]


async def test_what_is_set_up_wrongly_is_said_once() -> None:
    """Every kind of thing that makes lookups miss for ever has a line of its own."""
    bad = map_store([9], T16, lora_id=TRUE)
    foreign = map_store([8], T16, lora_id=integer(8))
    unnumbered = map_store([7], T16, lora_name=text("sql"))
    events = (bad, foreign, unnumbered, map_store([1], T16))
    async with rig(replay=False) as found:
        await found.synced()
        for _ in range(2):
            await found.engine.publish(batch(*events, rank=3, ts=1.0))
            await found.engine.publish(b"\xc1")
        await found.settled(4)
    said = [
        ("messages_unreadable", {"source": REPLICA, "cause": "envelope"}),
        ("adapter_without_name", {"replica": REPLICA, "lora_id": "8"}),
        ("adapter_without_number", {"replica": REPLICA, "lora_name": "sql"}),
        ("events_undecodable", {"replica": REPLICA, "cause": "lora_id"}),
        ("rank_differs", {"replica": REPLICA}),
        ("clock_differs", {"replica": REPLICA}),
    ]

    assert [line for line in found.log.lines if line[0] in dict(said)] == said


async def test_ranks_on_neighbouring_ports_share_a_replica_or_are_ones_of_their_own() -> None:
    """A clear of one rank leaves the other's keys, whether merged or separate."""
    for separate in (True, False):
        async with (
            two_ranks() as (first, second),
            running_server(throwaway_server_settings(), Lines()) as server,
        ):
            both = source(first, ranks_total=2, separate_ranks=separate)
            async with running_producer(
                producer_settings(both, servers=server.grpc_target), Lines()
            ) as producer:
                async with asyncio.timeout(LIMIT_S):
                    await producer.wait_synced()
                    await first.subscribed.wait()
                    await second.subscribed.wait()
                await first.publish(batch(map_store([1], T16), rank=0))
                await second.publish(batch(map_store([1], P4[:16]), rank=1))
                await second.publish(batch(map_clear(), rank=1))
                async with asyncio.timeout(LIMIT_S):
                    await producer.until(
                        lambda: [found.expected for found in producer.stats.sources] == [1, 2]
                    )
                    await producer.drained()
                names = (f"{REPLICA}/0", f"{REPLICA}/1") if separate else (REPLICA, REPLICA)

                assert matched(server, T16, replica_id=names[0]) == 16
                assert matched(server, P4, replica_id=names[1]) == 0


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_failure_costs_no_other_rank_its_blocks(
    monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    """It withdraws the replica that both share, so both are asked again; one, if it goes on."""
    async with (
        asyncio.timeout(LIMIT_S),
        two_ranks() as (first, second),
        running_server(throwaway_server_settings(), Lines()) as server,
        running_producer(
            producer_settings(
                source(first, ranks_total=2, start_over_interval_ns=300 * NS_PER_MS),
                servers=server.grpc_target,
            ),
            Lines(),
        ) as producer,
    ):
        await producer.wait_synced()
        await first.subscribed.wait()
        await second.subscribed.wait()
        await first.publish(batch(map_store([1], T16), rank=0))
        await second.publish(batch(map_store([1], [7] * 16), rank=1))
        await producer.until(lambda: len(list(producer.held_keys())) == 2)
        (engine,) = producer._engines
        apply, left = engine.feed.apply, [KeyError("scripted")] * failures

        def fail_at_first(rank: int, found: EventBatch, *, is_live: bool) -> Iterator[None]:
            if left and found.events[0].block_hashes == [2]:
                raise left.pop()
            return apply(rank, found, is_live=is_live)

        monkeypatch.setattr(engine.feed, "apply", fail_at_first)
        await first.publish(batch(map_store([2], P4[16:32], parent=1), rank=0))
        other = [7] * 16
        (key,) = chain(other, 16)

        def holds_other() -> bool:
            return key in {found.to_bytes(8, "big") for _, _, found, _ in producer.held_keys()}

        await producer.until(lambda: not left and holds_other())
        await producer.until(lambda: failures == 2 or len(list(producer.held_keys())) == 3)
        await producer.drained()
        assert matched(server, other) == 16
        assert failures == 2 or matched(server, [*T16, *P4[16:32]]) == 32
        await second.publish(batch(map_remove([1]), rank=1))
        await producer.until(lambda: not holds_other())


async def test_one_process_follows_several_engines() -> None:
    """Each engine is a replica of its own, and their hashes never meet."""
    async with (
        engine_sockets() as first,
        engine_sockets() as second,
        running_server(throwaway_server_settings(), Lines()) as server,
    ):
        chosen = producer_settings(
            source(first, replica_id="a"),
            source(second, replica_id="b"),
            servers=server.grpc_target,
        )
        async with running_producer(chosen, Lines()) as producer:
            async with asyncio.timeout(LIMIT_S):
                await producer.wait_synced()
                await first.subscribed.wait()
                await second.subscribed.wait()
            await first.publish(batch(map_store([1], T16)))
            await second.publish(batch(map_store([2], P4[:16], parent=1)))
            await second.publish(batch(map_store([3], T16)))
            async with asyncio.timeout(LIMIT_S):
                await producer.until(
                    lambda: [found.expected for found in producer.stats.sources] == [1, 2]
                )
                await producer.drained()

            assert matched(server, T16, replica_id="a") == 16
            assert matched(server, T16, replica_id="b") == 16
            assert matched(server, [*T16, *P4[:16]], replica_id="b") == 16
