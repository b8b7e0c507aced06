"""What an engine's events say: topic, layout, block size and rank."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from inferencecache.app.doctor_findings import Finding, finding
from inferencecache.app.doctor_layout import Shape
from inferencecache.clock import NS_PER_S
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.transport.doctor_ear import Heard

_SHOWN_MAX: Final = 5
_OLD_ARRAYS: Final = ("arrays of 5", "arrays of 6", "arrays of 7", "arrays of 8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Whether the engine worked while it was listened to.

    Attributes:
        is_known: Whether the metrics page tells.
        served_tokens: Prompt tokens it took in meanwhile.
    """

    is_known: bool
    served_tokens: int = 0


def judge_topic(heard: Heard, traffic: Traffic, settings: DoctorSettings) -> Finding:
    """Return whether events come, and under the topic that is listened to."""
    wanted = sum(times for topic, times in heard.topics.items() if topic.startswith(settings.topic))
    endpoint = settings.engine_endpoint
    if wanted:
        numbers = f", numbers {heard.numbers[0]} to {heard.numbers[-1]}" if heard.numbers else ""
        return finding("ET001", endpoint, f"{wanted} messages under the topic{numbers}")
    if heard.topics:
        others = ", ".join(repr(topic) for topic in sorted(heard.topics)[:_SHOWN_MAX])
        return finding(
            "ET002",
            endpoint,
            f"events come under {others} and not under {settings.topic!r}: "
            "give the subscriber that --topic, or the engine that topic",
        )
    seconds = settings.listen_ns / NS_PER_S
    if traffic.served_tokens:
        return finding(
            "ET003",
            endpoint,
            f"no event in {seconds:g} s although {traffic.served_tokens} prompt tokens were "
            "served: prefix caching or events may be off, or the engine cannot encode its hashes "
            "(vLLM before 0.10.2 with --prefix-caching-hash-algo sha256)",
        )
    if traffic.is_known:
        return finding(
            "ET005", endpoint, f"no event in {seconds:g} s, and no request either: send one"
        )
    return finding(
        "ET004",
        endpoint,
        f"no event in {seconds:g} s; give --engine-metrics-url to tell an idle engine from a "
        "silent one, or send a request meanwhile",
    )


def judge_layout(shape: Shape, settings: DoctorSettings) -> Iterator[Finding]:
    """Yield what the payloads look like and whether they can be used."""
    endpoint = settings.engine_endpoint
    if shape.unreadable and not shape.batches:
        message = "no payload is an event batch: this is another publisher"
        yield finding("EL002", endpoint, message)
        return
    if not shape.stores:
        yield finding("EL005", endpoint, "no block was stored meanwhile, so the layout is not seen")
    else:
        yield finding("EL001", endpoint, "; ".join(sorted(shape.forms)))
    if shape.faults or shape.unreadable:
        causes = [f"{cause} {times}" for cause, times in sorted(shape.faults.items())]
        causes += [f"unreadable batches {shape.unreadable}"] if shape.unreadable else []
        yield finding(
            "EL003", endpoint, f"some events cannot be used and are dropped: {', '.join(causes)}"
        )
    yield from _judge_age(shape, settings)


def _judge_age(shape: Shape, settings: DoctorSettings) -> Iterator[Finding]:
    """Yield what the release's age costs."""
    is_old = any(form.startswith(_OLD_ARRAYS) for form in shape.forms)
    is_metadata = any("0.5.18" in form for form in shape.forms)
    if shape.has_rootless_sglang:
        message = "this is SGLang 0.4, whose blocks do not tell their position; use 0.5.6 or later"
        yield finding("EL004", settings.engine_endpoint, message)
    elif is_old and not is_metadata and settings.hash_scheme != "sglang":
        message = (
            "in this layout salted and multimodal prompts look like plain ones; use vLLM 0.17 or "
            "later if there are any"
        )
        yield finding("EL004", settings.engine_endpoint, message)


def judge_block_size(shape: Shape, settings: DoctorSettings) -> Iterator[Finding]:
    """Yield whether the engine's blocks fit those of the index."""
    index_size = settings.block_size_tokens
    for size in sorted(shape.block_sizes):
        resource = f"{size} tokens"
        if size == index_size:
            yield finding("EB001", resource, "blocks are as large as the index's")
        elif size > index_size and size % index_size == 0:
            message = f"each block becomes {size // index_size} of the index's {index_size} tokens"
            yield finding("EB003", resource, message)
        elif size and index_size % size == 0:
            message = f"{index_size // size} blocks make one of the index's {index_size} tokens"
            yield finding("EB003", resource, message)
        else:
            yield finding(
                "EB002",
                resource,
                f"neither divides the index's {index_size} tokens nor is a multiple: nothing of "
                "it is indexed. Set the server's --engine-block-size and the subscriber's "
                "--block-size to a divisor of the engine's",
            )


def judge_rank(shape: Shape, settings: DoctorSettings) -> Iterator[Finding]:
    """Yield when the first port does not speak for rank 0."""
    others = sorted(shape.ranks - {0})
    if others:
        yield finding(
            "ER004",
            settings.engine_endpoint,
            f"events name rank {', '.join(map(str, others))} where rank 0 is expected: give the "
            "endpoint of rank 0, or the subscriber its --dp-rank",
        )
