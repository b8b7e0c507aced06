"""What endpoints have in flight, in tokens."""

from pipeline_rig import made, question, request, say, workers

from inferencecache.picker.pipeline import (
    EndpointView,
    Ranking,
    Request,
    Response,
    SchedulingResult,
)
from inferencecache.picker.pipeline.keys import (
    INFLIGHT_LOAD,
    PREFIX_MATCH,
    PROMPT_TOKENS,
    InflightLoad,
    PrefixMatch,
    PromptTokens,
)

START = Response(request_id="", start_of_stream=True)
END = Response(request_id="", end_of_stream=True)


def asked(key: int, tokens: int) -> Request:
    """Return a request with so many tokens."""
    return request(question(prompt_tokens=tokens), key=key)


def place(producer: object, placed: Request, endpoint: EndpointView) -> None:
    """Tell *producer* where a request goes."""
    ranking = Ranking(profile="", order=())
    producer.pre_request(placed, SchedulingResult(endpoint=endpoint, ranking=ranking))


async def load(producer: object, endpoint: EndpointView) -> InflightLoad:
    """Return what *producer* says of *endpoint*."""
    produced = await producer.produce(request(), [endpoint])
    return produced.about_endpoints[endpoint][INFLIGHT_LOAD.name]


async def test_the_prompt_goes_with_the_first_token_and_the_rest_with_the_end() -> None:
    """Two requests of 100 and 50 tokens, with answers of one and a half times as many."""
    producer, (a,) = made("inflight-load-producer", outputRatio=1.5), workers("a")
    first, second = asked(1, 100), asked(2, 50)
    place(producer, first, a)
    place(producer, second, a)
    assert await load(producer, a) == InflightLoad(requests=2, prompt_tokens=150, output_tokens=225)
    for _ in range(2):
        producer.response_body(first, START, a)
    assert await load(producer, a) == InflightLoad(requests=2, prompt_tokens=50, output_tokens=225)
    producer.response_body(first, END, a)
    assert await load(producer, a) == InflightLoad(requests=1, prompt_tokens=50, output_tokens=75)
    producer.response_body(second, END, a)
    assert await load(producer, a) == InflightLoad(requests=0, prompt_tokens=0)
    assert len(producer) == 0


async def test_what_is_cached_is_no_load() -> None:
    """100 tokens, of which 3 blocks of 16 are there; counted tokens beat guessed ones."""
    producer, (a,) = made("inflight-load-producer"), workers("a")
    say(a, PREFIX_MATCH, PrefixMatch(matched_blocks=3, total_blocks=6, block_tokens=16))
    placed = asked(1, 7)
    placed.attributes.put(PROMPT_TOKENS, PromptTokens(count=100, is_exact=True))
    place(producer, placed, a)
    assert (await load(producer, a)).prompt_tokens == 52


async def test_a_match_longer_than_the_prompt_is_no_credit() -> None:
    """The load never goes below nothing."""
    producer, (a,) = made("inflight-load-producer"), workers("a")
    say(a, PREFIX_MATCH, PrefixMatch(matched_blocks=9, total_blocks=9, block_tokens=16))
    place(producer, asked(1, 10), a)
    assert await load(producer, a) == InflightLoad(requests=1, prompt_tokens=0)


def test_an_end_of_a_request_it_was_not_told_of_changes_nothing() -> None:
    """As when its own PreRequest was left out."""
    producer, (a,) = made("inflight-load-producer"), workers("a")
    producer.response_body(asked(1, 10), END, a)
    assert len(producer) == 0
