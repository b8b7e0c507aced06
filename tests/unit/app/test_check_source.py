"""What is wrong with a source is found before anything is opened."""

import pytest

from inferencecache.app.producer_engine import check_source
from inferencecache.errors import ConfigError
from inferencecache.settings.subscribe import EngineSettings, SourceSettings


def source(port: int, replay_port: int, ranks: int, first: int = 0) -> SourceSettings:
    """Return an engine on this machine."""
    engine = EngineSettings(
        endpoint=f"tcp://*:{port}",
        replay_endpoint=f"tcp://127.0.0.1:{replay_port}",
        replica_id="pod-0",
        model_id="m",
        ranks_total=ranks,
        rank_first=first,
    )
    return SourceSettings(engine=engine)


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (source(5557, 5557, 1), "tcp://127.0.0.1:5557"),
        (source(5557, 5558, 2), "tcp://127.0.0.1:5558"),
        (source(5558, 5557, 2), "tcp://127.0.0.1:5558"),
        (source(5557, 5559, 3, 4), "tcp://127.0.0.1:5563"),
    ],
    ids=["the same", "rank 1 where rank 0 replays", "the other way round", "later ranks"],
)
def test_a_port_cannot_both_publish_and_replay(settings: SourceSettings, place: str) -> None:
    """The error names the setting and the place."""
    with pytest.raises(ConfigError, match="replay-endpoint") as caught:
        check_source(settings)
    assert place in str(caught.value)


@pytest.mark.parametrize(("replay_port", "ranks"), [(5558, 1), (5559, 2), (5657, 100)])
def test_ports_that_are_far_enough_apart(replay_port: int, ranks: int) -> None:
    """As many ranks fit between them as there is room."""
    check_source(source(5557, replay_port, ranks))
