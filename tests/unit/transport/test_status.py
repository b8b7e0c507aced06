"""The table from exceptions to statuses."""

import grpc
import pytest

from inferencecache import errors
from inferencecache.policy import PolicyPushError
from inferencecache.transport.status import STATUS_OF, UNEXPECTED, status_of

LEAVES = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and not kind.__subclasses__()
]


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.__name__)
def test_every_error_of_the_tree_has_a_row(kind: type[Exception]) -> None:
    """A new leaf must be given a status."""
    assert kind in STATUS_OF


def test_subclasses_share_their_parents_row() -> None:
    """An error defined elsewhere is what it is derived from."""
    error = PolicyPushError("text", field="f", value="v", allowed="a")

    assert status_of(error) is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "error", [RuntimeError(), KeyError(), errors.InferenceCacheError(), AssertionError()]
)
def test_everything_else_is_a_failure_of_ours(error: Exception) -> None:
    """No row: the boundary counts it and says UNAVAILABLE."""
    assert status_of(error) is None
    assert UNEXPECTED is grpc.StatusCode.UNAVAILABLE
