"""Stores of one block have a way of their own, many in a row; it may not be told from the other."""

from engine_events import batch_of, removed, stored, tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from inferencecache.events import BlockRemoved, BlockStored, EventMapper, Evict, Operation
from inferencecache.events.lone_stores import LoneStores
from inferencecache.events.stretch import STRETCH_BLOCKS
from inferencecache.settings.producer import MapperSettings

SETTINGS = MapperSettings(lora_adapter_names="1=one")
UNUSUAL: list[dict[str, object]] = [
    {"lora_id": 1},
    {"medium": "CPU"},
    {"opaque_from": 0},
    {"group_idx": 1, "kv_cache_spec_kind": "full_attention"},
]
KINDS: list[dict[str, object]] = [{}] * 12 + UNUSUAL


class NoLoneStores(LoneStores):
    """Leaves every store to the general way."""

    def place(self, *_: object) -> int:
        """Place nothing."""
        return 0


@st.composite
def histories(draw: st.DrawFn) -> list[BlockStored | BlockRemoved]:
    """Return stores of one block, mostly plain and of known parents, and some removals."""
    events: list[BlockStored | BlockRemoved] = []
    parents: list[int | None] = [None]
    for label in draw(st.lists(st.integers(0, 30), max_size=30)):
        if draw(st.integers(0, 9)) == 0:
            events.append(removed([label]))
            continue
        unknown = 100 if draw(st.integers(0, 19)) == 0 else None
        event = stored(
            [label],
            tokens(16 * draw(st.integers(0, 2)), draw(st.sampled_from([1, 1, 1, 2]))),
            unknown or draw(st.sampled_from(parents)),
            draw(st.sampled_from([16] * 9 + [32])),
            **draw(st.sampled_from(KINDS)),
        )
        events.append(event)
        parents.append(label)
    return events


def operations_of(
    mapper: EventMapper, batches: list[list[BlockStored | BlockRemoved]]
) -> list[Operation]:
    """Return what batches at different times make the index do."""
    found = [mapper.apply(batch_of(batch), 0) for batch in batches]
    mapper.check_invariants()
    return [operation for operations in found for operation in operations]


def general_mapper() -> EventMapper:
    """Return a mapper that knows only the general way."""
    mapper = EventMapper(SETTINGS)
    intake = mapper._intake
    intake._lone_stores = NoLoneStores(mapper._ledger, 16, mapper.counters)
    return mapper


@settings(max_examples=300, deadline=None)
@given(histories())
def test_a_row_does_what_its_stores_do(events: list[BlockStored | BlockRemoved]) -> None:
    """In one batch, in one each, or the general way: the same operations, counts and blocks."""
    mappers = [EventMapper(SETTINGS), EventMapper(SETTINGS), general_mapper()]
    told = [
        operations_of(mapper, batches)
        for mapper, batches in zip(
            mappers, [[events], [[event] for event in events], [events]], strict=True
        )
    ]

    assert _split_evictions(told[0]) == _split_evictions(told[1]) == _split_evictions(told[2])
    assert mappers[0].counters == mappers[1].counters == mappers[2].counters
    assert mappers[0].held_keys() == mappers[1].held_keys() == mappers[2].held_keys()
    for mapper in mappers[1:]:
        assert _blocks(mapper) == _blocks(mappers[0])


def _split_evictions(operations: list[Operation]) -> list[object]:
    """Return operations with one key per eviction, since batches end what is joined."""
    parts: list[object] = []
    for operation in operations:
        if isinstance(operation, Evict):
            parts.extend((operation.adapter_id, key) for key in operation.keys)
        else:
            parts.append(operation)
    return parts


def _blocks(mapper: EventMapper) -> list[list[tuple[object, ...]]]:
    return [
        [
            (label, block.chain, block.tokens, block.holding, block.parent_chain, block.detail)
            for label, block in group.blocks.present()
        ]
        for rank in mapper._ranks.values()
        for group in rank.groups.values()
    ]


def test_a_row_goes_on_in_the_next_stretch() -> None:
    """A batch with more stores than a stretch has room for leaves none out."""
    total = 3 * STRETCH_BLOCKS + 1
    mapper = EventMapper(SETTINGS)
    events = [stored([label], tokens(16 * label, 1)) for label in range(total)]
    operations = operations_of(mapper, [list(events)])

    assert len(operations) == mapper.counters.stored_blocks == mapper.blocks_total == total
    assert [label for label, *_ in _blocks(mapper)[0]] == list(range(total))
