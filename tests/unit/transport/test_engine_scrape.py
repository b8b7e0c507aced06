"""Metrics pages of engines, and silence."""

import pytest

from inferencecache.events.engine_metrics import EngineLoad
from inferencecache.transport.engine_scrape import only_series, parse_page
from inferencecache.transport.engine_scrape_silence import SilenceWatch

PAGE = """\
# TYPE a gauge
a{x="1"} 2
# TYPE b_total counter
b_total 3
"""


def named(text: str) -> dict[str, float]:
    """Return the series of a page by name."""
    return {sample.name: sample.value for sample in parse_page(text)}


def test_series_keep_name_value_labels_and_type() -> None:
    """What the profiles look at is there."""
    samples = {sample.name: sample for sample in parse_page(PAGE)}

    assert (samples["a"].value, samples["a"].labels, samples["a"].kind) == (
        2.0,
        {"x": "1"},
        "gauge",
    )
    assert samples["b_total"].kind == "counter"


@pytest.mark.parametrize("cut", range(len(PAGE)))
def test_a_page_cut_anywhere_gives_what_is_whole(cut: int) -> None:
    """No cut raises, and no number is a part of a longer one."""
    assert named(PAGE[:cut]).items() <= named(PAGE).items()


def test_a_page_of_something_else_gives_what_comes_before_it() -> None:
    """A line nobody can read ends the page."""
    assert (
        named(PAGE + "{{{ <html> }\n# TYPE c gauge\nc 4\n").items()
        <= {
            **named(PAGE),
            "c": 4.0,
        }.items()
    )


def test_only_what_is_asked_for_is_kept() -> None:
    """By whole names, with the line that says the type; what is malformed is not kept."""
    page = "# HELP a x\n# TYPE\n#TYPE a\n" + PAGE + "ab 7\na 3\n"
    kept = only_series(page, frozenset({"a"}))
    assert kept == '# TYPE a gauge\na{x="1"} 2\na 3\n'
    assert [sample.kind for sample in parse_page(kept)] == ["gauge", "gauge"]


def test_of_a_name_only_the_last_series_are_kept() -> None:
    """A page can have as many as its engine likes; the line with the type stays in front."""
    series = "".join(f'a{{x="{number}"}} {number}\n' for number in range(9))
    kept = only_series(f"# TYPE a gauge\n{series}b 1\n", frozenset({"a", "b"}), 2)
    assert kept == '# TYPE a gauge\na{x="7"} 7\na{x="8"} 8\nb 1\n'


def load(queries: float, hits: float = 0.0) -> EngineLoad:
    """Return what a page says of lookups in the engine's cache."""
    return EngineLoad(query_tokens=queries, hit_tokens=hits, running=1)


def test_tokens_that_were_computed_and_never_announced_make_an_engine_silent() -> None:
    """Only after the time, and only until something is heard."""
    watch = SilenceWatch(100, 16)
    seen = [
        watch.look(load(0), 5, 0),
        watch.look(load(500), 5, 50),
        watch.look(load(500), 5, 100),
        watch.look(load(900), 6, 110),
        watch.look(load(900), 6, 300),
    ]

    assert seen == [False, False, True, False, False]


def test_a_cache_that_serves_all_is_not_silent() -> None:
    """Hits make no events."""
    watch = SilenceWatch(100, 16)

    assert not any(watch.look(load(n, n - 10.0), 0, n) for n in range(10, 1000, 100))


def test_an_engine_without_counters_is_judged_by_its_requests() -> None:
    """SGLang shows no token counters; requests that run tell enough."""
    watch = SilenceWatch(100, 16)
    idle, busy = EngineLoad(running=0, waiting=0), EngineLoad(running=3, waiting=0)

    assert [watch.look(page, 0, now) for page, now in ((idle, 0), (idle, 200), (busy, 300))] == [
        False,
        False,
        True,
    ]


def test_a_restarted_engine_s_counters_start_a_new_span() -> None:
    """Counters that go back are no sign of silence."""
    watch = SilenceWatch(100, 16)
    watch.look(load(1000), 0, 0)
    watch.look(load(10), 0, 150)

    assert not watch.look(load(20), 0, 200)
