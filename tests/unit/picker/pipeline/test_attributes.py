"""Attributes: typed, bounded, readable by all and writable by few."""

from collections.abc import Sequence

import pytest
from pipeline_rig import SETTINGS, Making, director, key, pipeline, question, request, workers

from inferencecache.picker.pipeline import AttributeKey, EndpointView, Produced, Request
from inferencecache.picker.pipeline.attributes import WritableAttributes

COUNT = key("count")


def test_a_value_comes_back_under_its_key() -> None:
    """What was put is what is read."""
    attributes = WritableAttributes(2)
    attributes.put(COUNT, 3)
    assert attributes.get(COUNT) == 3
    assert COUNT in attributes
    assert list(attributes) == ["count"]


def test_what_nobody_said_is_none() -> None:
    """A missing value is no error."""
    assert WritableAttributes(1).get(COUNT) is None


def test_a_key_of_the_same_name_and_another_type_sees_nothing() -> None:
    """Nobody gets a value of a type that it does not expect."""
    attributes = WritableAttributes(1)
    attributes.put(COUNT, 3)
    assert attributes.get(AttributeKey("count", str)) is None


def test_a_value_of_another_type_is_refused() -> None:
    """The writer learns it, not the reader."""
    with pytest.raises(TypeError, match="count: str, not int"):
        WritableAttributes(1).put(COUNT, "3")


def test_there_is_an_end_to_them() -> None:
    """One more than the limit is refused; saying something anew is not one more."""
    attributes = WritableAttributes(1)
    attributes.put(COUNT, 1)
    attributes.put(COUNT, 2)
    with pytest.raises(AttributeError, match="more than 1 attributes"):
        attributes.put(key("other"), 1)
    assert attributes.get(COUNT) == 2


def test_behind_the_pre_admitters_a_request_stands_still() -> None:
    """Neither its attributes nor its own fields can be changed."""
    asked = request(question(tenant="acme"))
    asked.fairness_id = "team"
    asked.attributes.is_closed = True
    with pytest.raises(AttributeError):
        asked.fairness_id = "other"
    with pytest.raises(AttributeError):
        asked.headers = {}
    with pytest.raises(AttributeError):
        asked.attributes.put(COUNT, 1)
    assert asked.fairness_id == "team"


def test_headers_are_set_as_a_whole() -> None:
    """A change in place would be seen by nobody's rules; a change of what was set has no effect."""
    asked, headers = request(), {"x": "1"}
    asked.headers = headers
    headers["x"] = "2"
    with pytest.raises(TypeError):
        asked.headers["y"] = "3"
    assert asked.headers == {"x": "1"}


def test_at_first_a_request_counts_against_its_tenant() -> None:
    """Until a PreAdmitter says otherwise."""
    assert request(question(tenant="acme")).fairness_id == "acme"


@pytest.mark.parametrize(
    ("content", "given", "bytes_per_token", "expected"),
    [(b"", None, 4, 0), (b"abcde", None, 4, 2), (b"abcde", None, 2, 3), (b"abcd", 77, 2, 77)],
)
def test_the_length_of_a_prompt_is_given_or_guessed(
    content: bytes, given: int | None, bytes_per_token: int, expected: int
) -> None:
    """Token ids are counted; other prompts have so many bytes to a token, rounded up."""
    asked = question(content=content, prompt_tokens=given)
    assert request(asked, bytes_per_token=bytes_per_token).prompt_tokens == expected


def test_of_texts_beside_token_ids_the_longest_counts() -> None:
    """500 bytes are 125 tokens, which is more than 77, and less than 300."""
    for given, expected in ((77, 125), (300, 300)):
        asked = request(question(prompt_bytes=500, prompt_tokens=given))
        assert asked.prompt_tokens == expected


def test_limits_come_from_the_settings() -> None:
    """One number for requests and endpoints."""
    assert SETTINGS.attributes_max == 64


async def test_what_a_producer_keeps_it_cannot_change() -> None:
    """Once the director has taken its product, that is a copy."""
    kept: list[Produced] = []

    class Keeping(Making):
        """Keeps what it hands back."""

        async def produce(self, _request: Request, endpoints: Sequence[EndpointView]) -> Produced:
            """Say 1, and keep it."""
            produced = Produced()
            produced.put(COUNT, 1)
            produced.put_for(endpoints[0], COUNT, 1)
            kept.append(produced)
            return produced

    run = director(pipeline(maker=Keeping(COUNT))).open(question())
    views = workers("a")
    await run.produce(views)
    kept[0].put(COUNT, 2)
    kept[0].put_for(views[0], COUNT, 2)
    assert run.request.attributes.get(COUNT) == views[0].attributes.get(COUNT) == 1
