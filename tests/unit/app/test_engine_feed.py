"""What an engine's feed does between batches."""

from engine_events import batch_of, stored, tokens

from inferencecache.app.producer_feed import EngineFeed, FeedParts
from inferencecache.clock import ManualClock
from inferencecache.settings.subscribe import EngineSettings, SourceSettings

BLOCKS = 2_000


def test_what_a_restarted_rank_had_goes_without_another_batch() -> None:
    """An engine that starts anew and is idle leaves nothing behind, beside a rank that stays."""
    engine = EngineSettings(replica_id="pod", model_id="m", ranks_total=2)
    settings = SourceSettings(engine=engine)
    parts = FeedParts(settings=settings, links=(), clock=ManualClock(), cleared=lambda: None)
    feed = EngineFeed(parts)
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
