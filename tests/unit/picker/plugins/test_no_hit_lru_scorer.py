"""Cold requests go round."""

from pipeline_rig import made, request, say, workers

from inferencecache.picker.pipeline import EndpointView, Ranking, SchedulingResult
from inferencecache.picker.pipeline.keys import PREFIX_MATCH, PrefixMatch


def place(scorer: object, views: list[EndpointView], name: str) -> None:
    """Tell *scorer* that a request goes to *name*."""
    (chosen,) = [view for view in views if view.name == name]
    ranking = Ranking(profile="", order=(), scored=tuple(views))
    scorer.pre_request(request(), SchedulingResult(endpoint=chosen, ranking=ranking))


def matched(blocks: int) -> PrefixMatch:
    """Return a match of so many blocks."""
    return PrefixMatch(matched_blocks=blocks, total_blocks=8, block_tokens=16)


def test_who_never_got_one_comes_first_then_who_got_one_longest_ago() -> None:
    """C and d never, then b, then a: 1, 2/3, 1/3, 0."""
    scorer, views = made("no-hit-lru-scorer"), workers("a", "b", "c", "d")
    place(scorer, views, "a")
    place(scorer, views, "b")
    place(scorer, views, "a")
    scores = scorer.score(request(), views)
    assert [round(3 * score) for score in scores] == [0, 1, 3, 2]


def test_one_endpoint_gets_all_points() -> None:
    """There is no rank among one."""
    assert made("no-hit-lru-scorer").score(request(), workers("a")) == [1.0]


def test_a_warm_request_makes_no_difference_and_leaves_no_trace() -> None:
    """A match of no block is no match."""
    scorer, views = made("no-hit-lru-scorer"), workers("a", "b")
    say(views[0], PREFIX_MATCH, matched(0))
    assert scorer.score(request(), views) == [1.0, 0.0]
    say(views[0], PREFIX_MATCH, matched(1))
    assert scorer.score(request(), views) == [0.5, 0.5]
    place(scorer, views, "a")
    assert scorer.score(request(), workers("a", "b")) == [1.0, 0.0]


def test_what_it_remembers_is_bounded() -> None:
    """The oldest is forgotten, and counts as one that never got any."""
    scorer, views = made("no-hit-lru-scorer", lruSize=2), workers("a", "b", "c")
    for name in ("a", "b", "c"):
        place(scorer, views, name)
    assert scorer.score(request(), views) == [1.0, 0.5, 0.0]
    assert len(scorer._last_cold) == 2
