"""Restarts, reconnects and duplicates of one publisher."""

from collections.abc import Callable

import pytest
from engine_frames import IDLE, applied, frame, requested, synced, tracker
from engine_payloads import T16, batch, map_store
from msgpack_bytes import NIL, array, integer, mapping, real

from inferencecache.events import (
    Apply,
    Doubt,
    Frame,
    Reset,
    ResetReason,
    SyncState,
)


def test_restart_clears_once_and_replays_the_new_life() -> None:
    """0, 1, 2 then 0, 1 is a restart, found at the first number that comes again."""
    source = synced(0, 1, 2)
    commands = source.live(frame(0, life=1), 0)
    assert commands[0] == Reset(ResetReason.RESTART)
    ticket = requested(commands).ticket
    assert applied(source.live(frame(1, life=1), 0)) == []
    assert applied(source.replayed(ticket, frame(0, life=1), 0)) == [0, 1]
    source.replay_ended(ticket, 0)

    assert source.counters.restarts == 1
    assert source.expected == 2


def test_restart_whose_first_messages_were_missed() -> None:
    """A low number that is newer than everything seen is another life."""
    source = synced(*range(10))
    commands = source.live(frame(4, life=1), 0)
    assert commands[0] == Reset(ResetReason.RESTART)
    assert requested(commands).start == 0


def test_restart_without_replay_applies_what_comes() -> None:
    """The new life begins with the message that showed it."""
    source = tracker(has_replay=False)
    for number in (5, 6):
        source.live(frame(number), 0)
    commands = source.live(frame(0, life=1), 0)
    assert commands[0] == Reset(ResetReason.RESTART)
    assert applied(commands) == [0]
    assert not source.is_incomplete


def test_restart_of_an_engine_whose_clock_went_back() -> None:
    """The same number with another time is another message, older or newer."""
    source = synced(0, 1, 2)
    earlier = Frame(1, batch(map_store([1], T16), ts=3.0))
    assert source.live(earlier, 0)[0] == Reset(ResetReason.RESTART)


@pytest.mark.parametrize(
    "envelope",
    [
        lambda ts, event: array([integer(int(ts)), array([event]), integer(0)]),
        lambda ts, event: array([real(ts), array([event]), integer(0), NIL]),
        lambda ts, event: array([real(ts), array([event]), integer(0)], 16),
        lambda ts, event: mapping({"ts": real(ts), "events": array([event])}),
        lambda _, event: array([real(0.0), array([event]), integer(0)]),
        lambda _, event: array([NIL, array([event]), integer(0)]),
    ],
    ids=["whole seconds", "one more element", "wide header", "map", "no time", "nil"],
)
@pytest.mark.parametrize("has_replay", [True, False])
def test_restart_shows_wherever_the_time_is(
    envelope: Callable[[float, bytes], bytes], *, has_replay: bool
) -> None:
    """Messages of equal length differ in content; a repetition does not."""

    def sent(number: int, life: int) -> Frame:
        event = map_store([2**40 * (life + 1) + number], T16)
        return Frame(number, envelope(1_000.0 * (life + 1) + number, event))

    source = tracker(has_replay=has_replay)
    source.connected(0)
    for number in range(3):
        source.live(sent(number, 0), 0)
        if source.replay_ticket is not None:
            source.replay_ended(source.replay_ticket, 0)
    assert source.live(sent(1, 0), 0) == []
    assert source.counters.duplicates == 1

    commands = source.live(sent(0, 1), 0)
    assert commands[0] == Reset(ResetReason.RESTART)
    assert source.counters.restarts == 1


def test_restart_while_the_past_is_still_replayed() -> None:
    """A waiting number that comes again with other content voids what waited."""
    source = tracker()
    old = requested(source.connected(0)).ticket
    source.live(frame(3), 0)
    commands = source.live(frame(3, life=1), 0)
    assert commands[0] == Reset(ResetReason.RESTART)
    assert source.replayed(old, frame(0), 0) == []
    assert source.replay_ended(old, 0) == []
    assert source.replay_ticket == requested(commands).ticket


def test_duplicates_are_dropped() -> None:
    """The same message again is counted and nothing else, waiting or applied."""
    source = synced(0, 1)
    source.live(frame(3), 0)
    for again in (frame(0), frame(1), frame(3)):
        assert source.live(again, 0) == []
    assert source.counters.duplicates == 3


def test_duplicate_too_old_to_be_on_record() -> None:
    """Without a record only a newer time makes a restart."""
    source = tracker(has_replay=False)
    source.live(frame(50), 0)
    assert source.live(frame(20), 0) == []
    assert source.live(frame(20, life=1), 0)[0] == Reset(ResetReason.RESTART)


def test_reconnect_asks_for_the_last_message_again() -> None:
    """The same last message: same life; what was missed meanwhile follows."""
    source = synced(0, 1, 2)
    source.disconnected()
    assert source.state == SyncState.CONNECTING
    request = requested(source.connected(0))
    assert request.start == 2
    assert source.replayed(request.ticket, frame(2), 0) == []
    assert applied(source.replayed(request.ticket, frame(3), 0)) == [3]
    assert source.replay_ended(request.ticket, 0) == []
    assert source.is_synced


def test_reconnect_to_another_life() -> None:
    """Another message under the last number, or none at all, is a restart."""
    source = synced(0, 1, 2)
    request = requested(source.connected(0))
    commands = source.replayed(request.ticket, frame(2, life=1), 0)
    assert commands[0] == Reset(ResetReason.RESTART)
    assert requested(commands).start == 0

    source = synced(0, 1, 2)
    commands = source.replay_ended(requested(source.connected(0)).ticket, 0)
    assert commands[0] == Reset(ResetReason.RESTART)


def test_live_messages_wait_until_the_life_is_proven() -> None:
    """After a reconnect the next number could be another life's; it waits for the proof."""
    source = synced(0, 1, 2)
    ticket = requested(source.connected(0)).ticket
    assert source.live(frame(3), 0) == []
    assert applied(source.replayed(ticket, frame(2), 0)) == [3]

    source = synced(0, 1, 2)
    ticket = requested(source.connected(0)).ticket
    assert source.live(frame(3, life=1), 0) == []
    commands = source.replayed(ticket, frame(2, life=1), 0)
    assert applied(commands) == []
    assert commands[0] == Reset(ResetReason.RESTART)


def test_proof_that_never_comes() -> None:
    """Without an answer the stream goes on as it was, in doubt about what came before."""
    source = synced(0, 1)
    source.connected(0)
    source.live(frame(2), 0)
    now_ns, commands = 0, []
    for _ in range(3):
        now_ns += IDLE
        commands = source.tick(now_ns)

    assert commands[0] == Doubt(0)
    assert applied(commands) == [2]
    assert source.state == SyncState.LIVE


def test_reconnect_without_a_replay_is_in_doubt() -> None:
    """Nothing tells whether the engine is still the same; at first there was no other."""
    source = tracker(has_replay=False)
    assert source.connected(0) == []
    source.disconnected()
    assert source.connected(0) == []
    source.live(frame(0), 0)
    source.disconnected()
    assert source.connected(0) == [Doubt(0)]
    assert applied(source.live(frame(1), 0)) == [1]


def test_reconnect_to_a_ring_that_has_moved_on_is_in_doubt() -> None:
    """A replay from later on does not show the last message, which may be another life's."""
    source = synced(0, 1)
    ticket = requested(source.connected(0)).ticket
    commands = source.replayed(ticket, frame(2, life=1), 0)
    assert commands == [Doubt(0), Apply(2, frame(2, life=1).payload, is_live=False)]
    assert source.replay_ended(ticket, 0) == []
    assert source.is_synced


def test_a_second_reconnect_does_not_prove_what_the_first_one_could_not() -> None:
    """What a moved ring brought is another life's last message for all we know."""
    source = synced(0, 1)
    ticket = requested(source.connected(0)).ticket
    commands = source.replayed(ticket, frame(2, life=1), 0)
    commands += source.connected(0)
    commands += source.replayed(requested(commands).ticket, frame(2, life=1), 0)
    assert commands.count(Doubt(0)) == 1
    assert commands.index(Doubt(0)) < commands.index(
        Apply(2, frame(2, life=1).payload, is_live=False)
    )


def test_an_engine_is_vouched_for_while_it_is_there_and_proven() -> None:
    """From losing the connection until the replay shows the last message, nobody can tell."""
    source = tracker()
    assert not source.is_vouched_for
    source.replay_ended(requested(source.connected(0)).ticket, 0)
    source.live(frame(0), 0)
    assert source.is_vouched_for
    source.disconnected()
    assert not source.is_vouched_for
    assert applied(source.live(frame(1), 0)) == [1]  # was on its way
    assert not source.is_vouched_for
    assert source.state == SyncState.CONNECTING
    ticket = requested(source.connected(0)).ticket
    assert not source.is_vouched_for
    source.replayed(ticket, frame(1), 0)
    assert source.is_vouched_for


def test_replayed_message_that_is_on_no_record() -> None:
    """A number before the first one seen proves nothing."""
    source = tracker()
    ticket = requested(source.connected(0)).ticket
    source.replayed(ticket, frame(5), 0)
    assert source.replayed(ticket, frame(3), 0) == []
    assert source.counters.restarts == 0


@pytest.mark.parametrize("number", [2**63, 2**64 - 2])
@pytest.mark.parametrize("has_replay", [True, False])
def test_a_jump_too_far_ahead_is_another_life(number: int, *, has_replay: bool) -> None:
    """No engine misses so many messages: what is known goes, and no counter is ruined."""
    source = tracker(has_replay=has_replay)
    commands = source.connected(0)
    if has_replay:
        source.replay_ended(requested(commands).ticket, 0)
    assert applied(source.live(frame(0), 0)) == [0]
    commands = source.live(frame(number), 0)
    while has_replay and applied(commands) != [number]:
        commands = source.replay_ended(requested(commands).ticket, 0)

    assert [type(command) for command in commands] == [Reset, Apply]
    assert source.expected == number + 1
    assert source.counters.restarts == 1
    assert source.counters.lost_numbers == 0
    assert source.counters.missing_numbers == 0
    assert source.counters.final_gaps == 0


def test_the_largest_gap_is_doubt_and_no_other_life() -> None:
    """A million and some numbers may be lost at once, and are counted."""
    source = tracker(has_replay=False)
    source.connected(0)
    source.live(frame(0), 0)

    assert source.live(frame(2**20 + 1), 0)[0] == Doubt(2**20)
    assert source.counters.lost_numbers == 2**20
    assert source.counters.missing_numbers == 2**20
    assert source.live(frame(2**21 + 3), 0)[0] == Reset(ResetReason.RESTART)
    assert source.counters.lost_numbers == 2**20


def test_the_largest_gap_is_a_setting() -> None:
    """Six numbers that are missing are lost where six may be, and a restart where five may."""
    for batches_max, expected in ((6, Doubt(6)), (5, Reset(ResetReason.RESTART))):
        source = tracker(has_replay=False, gap_batches_max=batches_max)
        source.connected(0)
        source.live(frame(0), 0)
        assert source.live(frame(7), 0)[0] == expected


def test_start_over_asks_for_everything_again() -> None:
    """What was handed on comes once more, in order, and live messages wait for it."""
    source = synced(0, 1, 2)
    request = requested(source.start_over(0, may_ask=True))
    assert request.start == 0
    assert applied(source.live(frame(3), 0)) == []
    assert [
        number
        for past in range(3)
        for number in applied(source.replayed(request.ticket, frame(past), 0))
    ] == [0, 1, 2, 3]
    source.replay_ended(request.ticket, 0)

    assert source.is_synced
    assert not source.is_incomplete
    assert source.counters.restarts == 0


def test_start_over_without_a_replay_goes_on() -> None:
    """Nothing can be asked for; the past is known to be missing."""
    source = tracker(has_replay=False)
    source.connected(0)
    source.live(frame(0), 0)

    assert source.start_over(0, may_ask=True) == []
    assert source.is_incomplete
    assert applied(source.live(frame(1), 0)) == [1]


def test_start_over_that_may_not_ask_goes_on() -> None:
    """The stream goes on where it is, and is known to be incomplete."""
    source = synced(0, 1)

    assert source.start_over(0, may_ask=False) == []
    assert source.is_incomplete
    assert applied(source.live(frame(2), 0)) == [2]
