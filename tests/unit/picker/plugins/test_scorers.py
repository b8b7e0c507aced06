"""Scores of the product's own scorers, by numbers worked out by hand."""

import pytest
from pipeline_rig import made, provider, question, request, say, worker, workers

from inferencecache.picker.fleet import ModelRow
from inferencecache.picker.pipeline import EndpointView, LoadSnapshot, NoSignalError, Request
from inferencecache.picker.pipeline.keys import (
    INFLIGHT_LOAD,
    PREFIX_MATCH,
    InflightLoad,
    PrefixMatch,
)


def scores(
    type_name: str,
    endpoints: list[EndpointView],
    asked: Request | None = None,
    **parameters: object,
) -> list[float]:
    """Return the points of *endpoints*."""
    return list(made(type_name, **parameters).score(asked or request(), endpoints))


def loaded(*loads: LoadSnapshot) -> list[EndpointView]:
    """Return an endpoint for each of *loads*."""
    return [worker(f"e{place}", load=load) for place, load in enumerate(loads)]


def busy(*counts: int) -> list[EndpointView]:
    """Return endpoints with so many requests in flight."""
    return loaded(*(LoadSnapshot(requests_in_flight=count) for count in counts))


def test_active_requests_idle_is_one_and_busy_in_proportion() -> None:
    """(4 - 1) / 4, (4 - 4) / 4."""
    assert scores("active-request-scorer", busy(0, 1, 4)) == [1.0, 0.75, 0.0]


def test_active_requests_up_to_the_threshold_are_idle() -> None:
    """2 is idle; of 3 and 4, at most half: 0.5 x (4 - 3) / 4."""
    given = {"idleThreshold": 2, "maxBusyScore": 0.5}
    assert scores("active-request-scorer", busy(2, 3, 4), **given) == [1.0, 0.125, 0.0]


def queued(*counts: int | None) -> list[EndpointView]:
    """Return endpoints with so many requests in the queue of their engines."""
    return loaded(*(LoadSnapshot(waiting=count, running=count) for count in counts))


@pytest.mark.parametrize("scorer", ["queue-scorer", "running-requests-size-scorer"])
def test_queues_are_relative(scorer: str) -> None:
    """(10 - q) / (10 - 2); how many there are does not matter."""
    assert scores(scorer, queued(2, 4, 10)) == [1.0, 0.75, 0.0]
    assert scores(scorer, queued(0, 1)) == scores(scorer, queued(0, 100)) == [1.0, 0.0]


@pytest.mark.parametrize("scorer", ["queue-scorer", "running-requests-size-scorer"])
def test_equal_queues_get_one(scorer: str) -> None:
    """Nobody is worse."""
    assert scores(scorer, queued(7, 7)) == [1.0, 1.0]


def test_the_use_of_the_cache_counts_against_an_endpoint() -> None:
    """1 - usage, and never below 0."""
    usages = loaded(*(LoadSnapshot(cache_usage=usage) for usage in (0.0, 0.25, 1.5)))
    assert scores("kv-cache-utilization-scorer", usages) == [1.0, 0.75, 0.0]


def test_load_aware_begins_at_a_half() -> None:
    """0.5 x (1 - q / 128), with q cut off at 128; or another threshold."""
    assert scores("load-aware-scorer", queued(0, 32, 128, 500)) == [0.5, 0.375, 0.0, 0.0]
    assert scores("load-aware-scorer", queued(5), threshold=10) == [0.25]


@pytest.mark.parametrize(
    "scorer",
    [
        "queue-scorer",
        "running-requests-size-scorer",
        "kv-cache-utilization-scorer",
        "load-aware-scorer",
    ],
)
def test_an_endpoint_without_a_signal_is_in_the_middle(scorer: str) -> None:
    """And where nobody has one the scorer says so."""
    known = loaded(LoadSnapshot(waiting=0, running=0, cache_usage=0.0))
    assert scores(scorer, [*known, provider()])[1] == 0.5
    with pytest.raises(NoSignalError):
        scores(scorer, workers("a", "b"))


def test_token_load_counts_what_is_in_flight_and_what_would_come() -> None:
    """1 - (600 + 100) / 1000; 1 - (0 + 100 - 64) / 1000 with 4 cached blocks of 16; 1 - 1."""
    views = workers("a", "b", "c")
    say(views[0], INFLIGHT_LOAD, InflightLoad(requests=2, prompt_tokens=500, output_tokens=100))
    say(views[1], PREFIX_MATCH, PrefixMatch(matched_blocks=4, total_blocks=6, block_tokens=16))
    say(views[2], INFLIGHT_LOAD, InflightLoad(requests=2, prompt_tokens=5_000))
    asked = request(question(prompt_tokens=100))
    assert scores("token-load-scorer", views, asked, queueThresholdTokens=1_000) == [
        pytest.approx(0.3),
        pytest.approx(0.964),
        0.0,
    ]


def test_token_load_has_room_for_128_long_requests() -> None:
    """4,194,304 tokens: half of them leave half of the points."""
    (view,) = workers("a")
    say(view, INFLIGHT_LOAD, InflightLoad(requests=1, prompt_tokens=2_097_152))
    assert scores("token-load-scorer", [view]) == [0.5]


ADAPTER = ModelRow(name="sql", adapter_of="llama")


def adapted(**load: object) -> EndpointView:
    """Return an endpoint for the adapter."""
    return worker("e", row=ADAPTER, load=LoadSnapshot(**load))


def test_adapters_loaded_room_waiting_neither_unknown() -> None:
    """1, 0.8, 0.6, 0, and 0.5 as for all that an engine does not say."""
    others = frozenset({"x", "y"})
    views = [
        adapted(adapters=frozenset({"sql"}), adapters_max=1),
        adapted(adapters=frozenset({"x"}), adapters_max=2),
        adapted(adapters=others, waiting_adapters=frozenset({"sql"}), adapters_max=2),
        adapted(adapters=others, adapters_max=2),
        adapted(),
    ]
    assert scores("lora-affinity-scorer", views) == [1.0, 0.8, 0.6, 0.0, 0.5]


def test_a_base_model_is_loaded_everywhere() -> None:
    """Whether or not the engine says anything about adapters."""
    assert scores("lora-affinity-scorer", workers("a", "b")) == [1.0, 1.0]


def test_adapters_nobody_speaks_of_are_no_signal() -> None:
    """The scorer is left out then."""
    with pytest.raises(NoSignalError):
        scores("lora-affinity-scorer", [adapted()])


def test_a_header_that_equals_a_label_is_one() -> None:
    """In any case of the header's name; a provider has no labels."""
    views = [worker("a", labels={"zone": "x"}), worker("b", labels={"zone": "y"}), provider()]
    asked = request(question(headers={"x-zone": "y"}))
    given = {"headerName": "X-Zone", "labelKey": "zone"}
    assert scores("header-label-affinity-scorer", views, asked, **given) == [0.0, 1.0, 0.0]
    assert scores("header-label-affinity-scorer", views, **given) == [0.0, 0.0, 0.0]


def ranged(*ranges: str) -> list[EndpointView]:
    """Return endpoints with these labels; the empty one has none."""
    label = "llm-d.ai/context-length-range"
    return [
        worker(f"e{place}", labels={label: text} if text else {})
        for place, text in enumerate(ranges)
    ]


def long(tokens: int) -> Request:
    """Return a request with so many tokens."""
    return request(question(prompt_tokens=tokens))


def test_a_narrow_range_that_fits_is_best() -> None:
    """0.3 + 0.7 x 32768 / (32768 + width), for widths of 0, 32768 and 98304; no label is 0.5."""
    views = ranged("1000-1000", "0-32768", "0-98304", "")
    assert scores("context-length-aware", views, long(1_000)) == [
        pytest.approx(1.0),
        pytest.approx(0.65),
        pytest.approx(0.475),
        0.5,
    ]


def test_a_range_that_does_not_fit_counts_by_its_distance() -> None:
    """0.3 x 8192 / (8192 + distance), for distances of 8192 above and 24576 below."""
    views = ranged("0-1000", "33768-40000")
    assert scores("context-length-aware", views, long(9_192)) == [
        pytest.approx(0.15),
        pytest.approx(0.075),
    ]


def test_of_several_ranges_the_best_counts() -> None:
    """A label that is no range counts as none."""
    views = ranged("0-10, 1000-1000", "10", "20-10", "0-x,1000-1000")
    assert scores("context-length-aware", views, long(1_000)) == [
        pytest.approx(1.0),
        0.5,
        0.5,
        0.5,
    ]


def test_context_length_filters_if_it_is_told_to() -> None:
    """Who has no label stays."""
    views = ranged("0-100", "0-10", "")
    plain, filtering = (
        made("context-length-aware"),
        made("context-length-aware", enableFiltering=True),
    )
    assert plain.filter(long(50), views) == views
    assert filtering.filter(long(50), views) == [views[0], views[2]]


def test_context_length_reads_another_label() -> None:
    """As configured."""
    view = worker("a", labels={"range": "0-0"})
    assert scores("context-length-aware", [view], label="range") == [1.0]


@pytest.mark.parametrize("scorer", ["prefix-cache-scorer", "precise-prefix-cache-scorer"])
def test_prefixes_count_by_their_share_of_the_prompt(scorer: str) -> None:
    """6 of 8 blocks are 0.75; an endpoint of which nothing is known gets nothing."""
    views = workers("a", "b", "c")
    say(views[0], PREFIX_MATCH, PrefixMatch(matched_blocks=6, total_blocks=8, block_tokens=512))
    say(views[1], PREFIX_MATCH, PrefixMatch(matched_blocks=0, total_blocks=0, block_tokens=512))

    assert scores(scorer, views) == [0.75, 0.0, 0.0]


@pytest.mark.parametrize(
    ("blocks", "score"), [(4, 0.078125), (8, 0.25), (16, 0.875), (20, 0.90625)]
)
def test_prefixes_count_by_their_length_if_told_so(blocks: int, score: float) -> None:
    """8 of 32 blocks: 0.75 x (8 / 16) squared + 0.25 x 8 / 32; 16 blocks are as long as can be."""
    (view,) = workers("a")
    match = PrefixMatch(matched_blocks=blocks, total_blocks=32, block_tokens=512)
    say(view, PREFIX_MATCH, match)

    assert scores("prefix-cache-scorer", [view], matchLengthWeight=0.75) == [score]


def test_prefixes_of_which_nothing_is_known_have_no_say() -> None:
    """Without an index or a memory of Picks the scorer is left out."""
    with pytest.raises(NoSignalError):
        scores("prefix-cache-scorer", workers("a", "b"))
