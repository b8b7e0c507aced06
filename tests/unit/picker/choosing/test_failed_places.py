"""Where requests have failed: what is remembered, against a plain list, and how little of it."""

from hypothesis import given
from hypothesis import strategies as st

from inferencecache.picker.choosing import FailedPlaces, RequestName

MOST, KEPT = 4, 10
NAMES = st.builds(RequestName, st.sampled_from(["", "acme"]), st.sampled_from(["", "r1", "r2"]))
STEPS = st.one_of(
    st.tuples(st.just("failed"), NAMES, st.sampled_from("abc")),
    st.tuples(st.just("worked"), NAMES, st.just("")),
    st.tuples(st.just("wait"), NAMES, st.sampled_from(["1", "4", "9", "10"])),
)


class PlainFailures:
    """All failures as they came, told again for every question."""

    def __init__(self) -> None:
        self.told: list[tuple[RequestName, str, int]] = []

    def failed(self, request: RequestName, place: str, now: int) -> None:
        """Put the failure last, once."""
        if request.client_request_id:
            kept = [one for one in self.alive(now) if one[:2] != (request, place)]
            self.told = [*kept, (request, place, now + KEPT)][-MOST:]

    def worked(self, request: RequestName) -> None:
        """Take those of a request away."""
        self.told = [one for one in self.told if one[0] != request]

    def alive(self, now: int) -> list[tuple[RequestName, str, int]]:
        """Return those whose time is not over."""
        return [one for one in self.told if one[2] > now]


@given(st.lists(STEPS, max_size=60))
def test_any_order_of_failures_and_time_is_remembered_as_told(
    steps: list[tuple[str, RequestName, str]],
) -> None:
    """Never more than the most, and nothing of requests without a name."""
    real, plain, now = FailedPlaces(MOST, KEPT), PlainFailures(), 1_000
    for what, request, detail in steps:
        if what == "failed":
            real.failed(request, detail, now)
            plain.failed(request, detail, now)
        elif what == "worked":
            real.worked(request)
            plain.worked(request)
        else:
            now += int(detail)
        alive = plain.alive(now)
        for asked in {each for _, each, _ in steps}:
            assert set(real.of(asked, now)) == {one[1] for one in alive if one[0] == asked}
        assert len(real) == len(alive) <= MOST
    real.expire(now + KEPT)
    assert len(real) == 0
    assert not any(real.of(request, now + KEPT) for _, request, _ in steps)


def test_nothing_is_remembered_where_there_is_no_room_or_no_time() -> None:
    """Either setting switches it off."""
    request = RequestName("", "r1")
    for failed in (FailedPlaces(0, KEPT), FailedPlaces(MOST, 0)):
        failed.failed(request, "a", 1)
        assert len(failed) == 0
        assert failed.of(request, 1) == set()
