"""What the picker remembers of its Picks, against the same told again from all placings."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from plain_picked_blocks import PlainPickedBlocks, PlainPlacing

from inferencecache.picker.prefix.picked_blocks import PickedBlocks, Placing
from inferencecache.settings.picker_prefix import PickerPrefixSettings

SHELF_MAX, ALL_MAX, IDLE_NS = 6, 10, 1_000
ENDPOINTS = ("a", "b", "c")

CHAINS = [
    (1, 2, 3, 4),
    (1, 2, 3, 5),
    (1, 2, 6, 7, 8, 9, 10, 11),
    (1,),
    (12, 13, 14),
    (12, 13, 15, 16, 17, 18),
    (),
]
"""Chains as prompts have them: a key stands for everything before it, so it follows one other."""


def packed(chain: tuple[int, ...]) -> bytes:
    """Return a chain as the picker has it."""
    return b"".join(key.to_bytes(8) for key in chain)


class PickedBlocksMachine(RuleBasedStateMachine):
    """Place, settle, withdraw, wait, sweep, lose endpoints; ask for everything after each step."""

    placings = Bundle("placings")

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 10_000
        self.blocks = PickedBlocks(
            PickerPrefixSettings(endpoint_blocks_max=SHELF_MAX, blocks_max=ALL_MAX, idle_ns=IDLE_NS)
        )
        self.plain = PlainPickedBlocks(SHELF_MAX, ALL_MAX, IDLE_NS)
        self.withdrawable = 0

    @rule(
        target=placings,
        endpoint=st.sampled_from(ENDPOINTS),
        chain=st.sampled_from(CHAINS),
        expected_ns=st.integers(0, 3 * IDLE_NS),
    )
    def place(
        self, endpoint: str, chain: tuple[int, ...], expected_ns: int
    ) -> tuple[Placing, PlainPlacing]:
        """Send a prompt somewhere."""
        until_ns = self.now_ns + expected_ns
        plain = self.plain.place(endpoint, chain, self.now_ns, until_ns)
        placing = self.blocks.place(endpoint, packed(chain), self.now_ns, until_ns)
        if self.withdrawable + len(plain.keys) > ALL_MAX:
            plain.keys = ()
        self.withdrawable += len(plain.keys)
        assert placing.keys == packed(plain.keys)
        return placing, plain

    @rule(both=consumes(placings))
    def withdraw(self, both: tuple[Placing, PlainPlacing]) -> None:
        """Take a placing back."""
        self.withdrawable -= len(both[1].keys)
        self.blocks.withdraw(both[0])
        self.plain.withdraw(both[1])

    @rule(both=consumes(placings))
    def settle(self, both: tuple[Placing, PlainPlacing]) -> None:
        """Let a placing come true."""
        self.withdrawable -= len(both[1].keys)
        self.blocks.settle(both[0])

    @rule(time_ns=st.integers(0, IDLE_NS))
    def wait(self, time_ns: int) -> None:
        """Let time go by."""
        self.now_ns += time_ns

    @rule()
    def sweep(self) -> None:
        """Forget what is idle."""
        self.blocks.sweep(self.now_ns, runs_max=ALL_MAX)
        self.plain.sweep(self.now_ns)

    @rule(endpoints=st.sets(st.sampled_from(ENDPOINTS)))
    def retain(self, endpoints: set[str]) -> None:
        """Lose all other endpoints."""
        self.blocks.retain(endpoints)
        self.plain.retain(endpoints)

    def held(self, endpoint: str, chain: tuple[int, ...], *, is_expected: bool) -> int:
        """Return how much of *chain* is believed to be at *endpoint*."""
        shelf = self.blocks.shelves.get(endpoint)
        since_ns = self.now_ns if is_expected else self.blocks.idle_since_ns(self.now_ns)
        return 0 if shelf is None else shelf.held(packed(chain), since_ns, is_expected=is_expected)

    @invariant()
    def answers_are_those_of_the_model(self) -> None:
        """Ask both for every chain everywhere."""
        for endpoint in ENDPOINTS:
            for chain in CHAINS:
                for is_expected in (False, True):
                    found = self.held(endpoint, chain, is_expected=is_expected)
                    expected = self.plain.held(
                        endpoint, chain, self.now_ns, is_expected=is_expected
                    )
                    assert found == expected, (endpoint, chain, is_expected)

    @invariant()
    def bounds_hold(self) -> None:
        """Count what is remembered."""
        assert self.blocks.stretches == len(self.plain.table) <= ALL_MAX


PickedBlocksMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestPickedBlocks = PickedBlocksMachine.TestCase
