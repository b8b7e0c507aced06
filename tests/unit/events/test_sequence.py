"""Order, gaps and replays of one publisher."""

import pytest
from engine_frames import IDLE, TOTAL, applied, frame, requested, synced, tracker

from inferencecache.events import (
    Apply,
    Doubt,
    Frame,
    RequestReplay,
    Reset,
    ResetReason,
    SyncState,
)
from inferencecache.events.frames import END_OF_REPLAY


def test_connect_asks_for_everything_at_once() -> None:
    """An idle engine sends nothing, so the past is asked for without waiting."""
    source = tracker()
    assert source.state == SyncState.CONNECTING
    request = requested(source.connected(0))

    assert request.start == 0
    assert source.state == SyncState.SYNCING
    assert not source.is_synced
    assert applied(source.replayed(request.ticket, frame(0), 0)) == [0]
    assert applied(source.replayed(request.ticket, frame(1), 0)) == [1]
    source.replay_ended(request.ticket, 0)
    assert source.is_synced
    assert source.expected == 2
    assert not source.is_incomplete


def test_live_messages_wait_for_the_past_and_are_merged() -> None:
    """What comes live during a replay is applied in order and once."""
    source = tracker()
    ticket = requested(source.connected(0)).ticket
    assert applied(source.live(frame(2), 0)) == []
    assert source.waiting_batches == 1
    assert applied(source.replayed(ticket, frame(0), 0)) == [0]
    assert applied(source.replayed(ticket, frame(1), 0)) == [1, 2]
    assert applied(source.replayed(ticket, frame(2), 0)) == []
    assert applied(source.live(frame(3), 0)) == [3]
    source.replay_ended(ticket, 0)
    assert source.state == SyncState.LIVE
    assert source.counters.replayed == 2


def test_replay_that_runs_ahead_of_the_live_stream() -> None:
    """Live messages that a replay brought already are duplicates, not a restart."""
    source = synced(0, 1, 2)
    assert source.live(frame(1), 0) == []
    assert source.live(frame(2), 0) == []
    assert applied(source.live(frame(3), 0)) == [3]
    assert source.counters.duplicates == 2
    assert source.counters.restarts == 0


def test_gap_is_replayed_from_the_missing_number() -> None:
    """0, 1, 3 with 2 in the ring ends as 0 to 3."""
    source = synced(0)
    source.live(frame(1), 0)
    request = requested(source.live(frame(3), 0))
    assert request.start == 2
    assert source.state == SyncState.GAP
    assert source.live(frame(4), 0) == []
    assert applied(source.replayed(request.ticket, frame(2), 0)) == [2, 3, 4]
    source.replay_ended(request.ticket, 0)
    assert source.state == SyncState.LIVE
    assert (source.counters.gaps, source.counters.missing_numbers) == (1, 1)
    assert source.counters.lost_numbers == 0


def test_burnt_number_is_given_up_after_bounded_attempts() -> None:
    """A number that no replay has is lost once; the stream goes on in doubt."""
    source = synced(0)
    commands = source.live(frame(2), 0)
    for _ in range(3):
        ticket = requested(commands).ticket
        source.replayed(ticket, frame(2), 0)
        commands = source.replay_ended(ticket, 0)

    assert commands == [Doubt(1), Apply(2, frame(2).payload, is_live=True)]
    assert source.is_incomplete
    assert source.counters.final_gaps == 1
    assert source.counters.lost_numbers == 1
    assert source.state == SyncState.LIVE
    assert applied(source.live(frame(3), 0)) == [3]


def test_gap_without_replay_goes_on_or_clears() -> None:
    """Without a replay socket a gap is final at once; an option clears instead of doubting."""
    source = tracker(has_replay=False)
    assert source.connected(0) == []
    numbers = [number for n in (0, 1, 2, 5, 6) for number in applied(source.live(frame(n), 0))]
    assert numbers == [0, 1, 2, 5, 6]
    assert source.counters.lost_numbers == 2
    assert source.counters.missing_numbers == 2

    clearing = tracker(has_replay=False, clear_on_gap=True)
    clearing.live(frame(0), 0)
    assert clearing.live(frame(2), 0)[0] == Reset(ResetReason.GAP)


def test_late_start_without_replay_is_incomplete() -> None:
    """The first message seen sets the count; what came before is unknown."""
    source = tracker(has_replay=False)
    assert applied(source.live(frame(41), 0)) == [41]
    assert source.is_incomplete
    assert source.counters.heads_lost == 1


def test_head_that_left_the_ring() -> None:
    """A replay that begins later than asked is applied; the head is lost."""
    source = synced(30, 31)
    assert source.expected == 32
    assert source.is_incomplete
    assert source.counters.heads_lost == 1
    assert source.counters.lost_numbers == 0


def test_holes_in_a_replay_are_asked_for_again() -> None:
    """Progress renews the attempts, so a lossy replay is completed piece by piece."""
    source = tracker()
    request = requested(source.connected(0))
    have: list[int] = []
    for step in range(20):
        sent = [n for n in range(request.start, 40) if n == request.start or n % (step + 2) == 0]
        for number in sent:
            have += applied(source.replayed(request.ticket, frame(number), 0))
        commands = source.replay_ended(request.ticket, 0)
        if not commands:
            break
        request = requested(commands)

    assert have == list(range(len(have)))
    assert source.counters.final_gaps == 0
    assert source.state == SyncState.LIVE


def test_replay_without_an_end_is_timed() -> None:
    """Silence ends a replay; it is tried again and then taken as complete."""
    source = tracker()
    ticket = requested(source.connected(0)).ticket
    source.replayed(ticket, frame(0), 5)
    assert source.deadline_ns == 5 + IDLE
    assert source.tick(5 + IDLE - 1) == []

    now_ns = 5 + IDLE
    commands = source.tick(now_ns)
    for _ in range(3):
        assert requested(commands).start == 1
        now_ns += IDLE
        commands = source.tick(now_ns)

    assert commands == []
    assert source.state == SyncState.LIVE
    assert source.deadline_ns is None
    assert source.counters.replay_timeouts == 4


def test_replay_socket_that_never_answers() -> None:
    """After the attempts the live stream is taken as it is."""
    source = tracker()
    commands = source.connected(0)
    source.live(frame(7), 0)
    now_ns = 0
    while any(isinstance(command, RequestReplay) for command in commands):
        now_ns += IDLE
        commands = source.tick(now_ns)

    assert applied(commands) == [7]
    assert source.is_incomplete

    silent = tracker()
    commands = silent.connected(0)
    for _ in range(3):
        now_ns += IDLE
        commands = silent.tick(now_ns)
    assert silent.state == SyncState.LIVE
    assert applied(silent.live(frame(9), now_ns)) == [9]


def test_filling_a_gap_has_a_total_limit() -> None:
    """A replay that keeps trickling does not hold the stream for ever."""
    source = synced(0)
    ticket = requested(source.live(frame(5), 0)).ticket
    source.live(frame(7), 0)
    now_ns = 0
    while now_ns < TOTAL - IDLE:
        now_ns += IDLE // 2
        source.replayed(ticket, frame(7), now_ns)
    commands = source.tick(TOTAL)

    assert [type(command) for command in commands] == [Doubt, Apply, Doubt, Apply]
    assert applied(commands) == [5, 7]
    assert source.state == SyncState.LIVE


def test_nothing_published_yet() -> None:
    """An end marker without messages means that 0 comes first; later numbers are a gap."""
    source = synced()
    assert source.expected == 0
    assert not source.is_incomplete
    assert requested(source.live(frame(1), 0)).start == 0


def test_reorder_buffer_is_bounded_and_refused_messages_are_found_again() -> None:
    """What found no room is missing like anything else."""
    source = synced(0, reorder_batches_max=2)
    request = requested(source.live(frame(2), 0))
    for number in (3, 4, 5):
        source.live(frame(number), 0)
    assert source.waiting_batches == 2
    assert source.counters.reorder_refused == 2

    assert applied(source.replayed(request.ticket, frame(1), 0)) == [1, 2, 3]
    request = requested(source.replay_ended(request.ticket, 0))
    assert request.start == 4
    assert applied(source.replayed(request.ticket, frame(4), 0)) == [4]
    assert applied(source.replayed(request.ticket, frame(5), 0)) == [5]
    assert source.replay_ended(request.ticket, 0) == []


def test_next_message_passes_a_full_buffer() -> None:
    """A batch larger than the buffer is applied when it is its turn."""
    source = synced(0, reorder_bytes_max=1)
    assert applied(source.live(frame(1), 0)) == [1]


def test_end_marker_is_never_a_batch() -> None:
    """The number of the marker is not stored, so later batches are not old."""
    source = synced(0)
    assert source.live(Frame(END_OF_REPLAY, b""), 0) == []
    assert applied(source.live(frame(1), 0)) == [1]
    assert source.counters.stray_ends == 1


def test_answers_to_a_void_request_are_ignored() -> None:
    """A replay that was given up may still talk."""
    source = tracker()
    old = requested(source.connected(0)).ticket
    new = requested(source.tick(IDLE)).ticket
    assert source.replayed(old, frame(0), IDLE) == []
    assert source.replay_ended(old, IDLE) == []
    assert applied(source.replayed(new, frame(0), IDLE)) == [0]


def test_second_gap_after_one_was_given_up_is_asked_for() -> None:
    """Each gap has its own attempts."""
    source = synced(0, replay_attempts_max=1)
    ticket = requested(source.live(frame(2), 0)).ticket
    source.live(frame(4), 0)
    commands = source.replay_ended(ticket, 0)

    assert applied(commands) == [2]
    assert requested(commands).start == 3


def test_first_replay_fails_with_a_gap_in_what_waited() -> None:
    """The live stream starts where it can, and its own gap is asked for."""
    source = tracker(replay_attempts_max=1)
    source.connected(0)
    for number in (7, 9):
        source.live(frame(number), 0)
    commands = source.tick(IDLE)

    assert applied(commands) == [7]
    assert requested(commands).start == 8


@pytest.mark.parametrize("waiting", [[0, 1, 2], [0, 2], [4]])
def test_a_ring_that_has_turned_over_puts_nothing_out_of_order(waiting: list[int]) -> None:
    """Messages that came live before the replay's first come before it, or are doubted."""
    source = tracker()
    ticket = requested(source.connected(0)).ticket
    for number in waiting:
        assert source.live(frame(number), 0) == []
    commands = [
        command for number in range(5, 8) for command in source.replayed(ticket, frame(number), 0)
    ]
    commands += source.replay_ended(ticket, 0)
    while source.replay_ticket is not None:
        commands += source.replay_ended(source.replay_ticket, 0)

    assert applied(commands) == [*waiting, 5, 6, 7]
    lost = sum(command.missed for command in commands if isinstance(command, Doubt))
    assert lost == 8 - waiting[0] - len(waiting) - 3
    assert source.expected == 8
