"""Where the ranks of an engine are."""

import pytest

from inferencecache.errors import ConfigError
from inferencecache.transport.zmq_endpoint import rank_endpoint


@pytest.mark.parametrize(
    ("endpoint", "rank", "expected"),
    [
        ("tcp://10.0.0.7:5557", 0, "tcp://10.0.0.7:5557"),
        ("tcp://10.0.0.7:5557", 3, "tcp://10.0.0.7:5560"),
        ("tcp://*:5557", 1, "tcp://127.0.0.1:5558"),
        ("tcp://0.0.0.0:5557", 0, "tcp://127.0.0.1:5557"),
        ("tcp://[::]:5557", 0, "tcp://127.0.0.1:5557"),
        ("tcp://[fd00::1]:5557", 2, "tcp://[fd00::1]:5559"),
        ("ipc:///run/kv.sock", 0, "ipc:///run/kv.sock"),
    ],
)
def test_each_rank_is_one_port_above_the_one_before(
    endpoint: str, rank: int, expected: str
) -> None:
    """The engine's own endpoint may be given as it is in the engine's configuration."""
    assert rank_endpoint(endpoint, rank, flag="engine-endpoint") == expected


@pytest.mark.parametrize(
    ("endpoint", "rank"),
    [
        ("10.0.0.7:5557", 0),
        ("tcp://10.0.0.7", 0),
        ("tcp://10.0.0.7:0", 0),
        ("tcp://10.0.0.7:65535", 1),
        ("ipc:///run/kv.sock", 1),
        ("", 0),
    ],
)
def test_an_endpoint_nobody_can_be_at_is_refused(endpoint: str, rank: int) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError) as caught:
        rank_endpoint(endpoint, rank, flag="replay-endpoint")

    assert caught.value.field == "replay-endpoint"
