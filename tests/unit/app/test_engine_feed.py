"""What an engine's feed does between batches."""

from engine_events import batch_of, stored, tokens

from inferencecache.app.producer_feed import EngineFeed, FeedParts
from inferencecache.clock import ManualClock
from inferencecache.settings.subscribe import EngineSettings, SourceSettings

BLOCKS = 2_000


def feed_of(settings: SourceSettings, clock: ManualClock) -> EngineFeed:
    """Return a feed of an engine that is told to nobody."""
    parts = FeedParts(
        settings=settings,
        links=(),
        clock=clock,
        cleared=lambda: None,
        withdrawn=lambda _: None,
    )
    return EngineFeed(parts)


def told_to_an_empty_server(feed: EngineFeed) -> int:
    """Return how many keys a server that starts anew would be told."""
    steps = feed.router.mapper_of(0).live_set(include_doubtful=True)
    return sum(len(run.keys) for runs in steps for run in runs)


def test_an_engine_that_was_away_for_long_is_told_to_no_new_server() -> None:
    """From its going away on, however often that is noted; once it is back, all is told again."""
    engine = EngineSettings(replica_id="pod", model_id="m", ranks_total=1, forgotten_after_ns=100)
    clock = ManualClock()
    settings = SourceSettings(engine=engine)
    feed = feed_of(settings, clock)
    batch = batch_of([stored([1], tokens(0, 1))], rank=3)
    for _ in feed.apply(0, batch, is_live=False):
        continue
    for is_there, waited_ns, expected in (
        (False, 99, 1),
        (True, 200, 1),
        (False, 50, 1),
        (False, 49, 1),
        (False, 1, 0),
        (True, 200, 1),
    ):
        feed.vouch(0, is_there=is_there)
        clock.advance_ns(waited_ns)
        feed.forget_away()
        assert told_to_an_empty_server(feed) == expected


def test_what_a_restarted_rank_had_goes_without_another_batch() -> None:
    """An engine that starts anew and is idle leaves nothing behind, beside a rank that stays."""
    engine = EngineSettings(replica_id="pod", model_id="m", ranks_total=2)
    settings = SourceSettings(engine=engine)
    feed = feed_of(settings, ManualClock())
    many = stored(list(range(BLOCKS)), tokens(0, BLOCKS))
    for rank, event in enumerate((many, stored([1], tokens(0, 1)))):
        for _ in feed.apply(rank, batch_of([event]), is_live=False):
            continue
    mapper = feed.router.mapper_of(0)
    feed.reset(0)
    assert mapper.blocks_total > 1

    slices = sum(1 for _ in feed.withdraw_slices())
    assert slices >= 3
    assert mapper.blocks_total == 1
    assert list(feed.withdraw_slices()) == []
