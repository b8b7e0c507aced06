"""Candidates as plugins see them, with what the picker itself knows of each."""

from collections.abc import Sequence
from functools import lru_cache

from inferencecache.picker.choosing.outlook import Knowledge, Outlook
from inferencecache.picker.choosing.survey import Survey
from inferencecache.picker.choosing.tiers import Views
from inferencecache.picker.fleet import Candidate
from inferencecache.picker.load import IDLE
from inferencecache.picker.pipeline import (
    NO_LOAD,
    PREFIX_MATCH,
    PROMPT_TOKENS,
    EndpointView,
    LoadSnapshot,
    PrefixMatch,
    Produced,
    PromptTokens,
)
from inferencecache.picker.prefix import PrefixSource


@lru_cache(maxsize=1_024)
def _given(count: int) -> LoadSnapshot:
    """Return the load of an endpoint that says nothing itself, with *count* requests in flight."""
    return LoadSnapshot(requests_in_flight=count)


def views_of(found: Survey, knowledge: Knowledge | None, now_ns: int) -> Views:
    """Return the candidates of *found*, all with their load of this moment.

    Args:
        found: Who could take the request.
        knowledge: What they have to do; None where there is no plugin that would look at it.
        now_ns: Monotonic time.
    """
    if knowledge is None:
        return [
            (tier, [EndpointView(each) for each in candidates]) for tier, candidates in found.fields
        ]
    loads, signals = knowledge.loads.loads, knowledge.signals

    def seen(candidate: Candidate) -> EndpointView:
        count = loads.get(candidate.name, IDLE).requests
        signal = signals.of(candidate.name, now_ns)
        if signal is not None:
            return EndpointView(
                candidate,
                LoadSnapshot(
                    requests_in_flight=count,
                    waiting=signal.waiting,
                    running=signal.running,
                    cache_usage=signal.cache_usage,
                    adapters=signal.adapters,
                    waiting_adapters=signal.waiting_adapters,
                    adapters_max=signal.adapters_max,
                ),
            )
        return EndpointView(candidate, _given(count))

    if len(signals):
        return [(tier, [seen(each) for each in candidates]) for tier, candidates in found.fields]
    return [
        (
            tier,
            [
                EndpointView(each, _given(loads[each.name].requests))
                if each.name in loads
                else EndpointView(each, NO_LOAD)
                for each in candidates
            ],
        )
        for tier, candidates in found.fields
    ]


def given_to_plugins(views: Sequence[EndpointView], outlook: Outlook) -> Produced:
    """Return what plugins are told of the prompt: its length, and who has how much of it.

    Nobody knows what a provider has, so nothing is said of one. Without any source nothing is said
    of anybody, which is not the same as nothing matched.
    """
    produced = Produced()
    length = PromptTokens(count=outlook.prompt_tokens, is_exact=outlook.is_counted)
    produced.put(PROMPT_TOKENS, length)
    if outlook.found.source is PrefixSource.NONE:
        return produced
    for view in views:
        if not view.candidate.is_provider:
            match = PrefixMatch(
                matched_blocks=outlook.match_of(view.candidate).matched_tokens,
                total_blocks=outlook.tokens_at(view.candidate),
                block_tokens=1,
            )
            produced.put_for(view, PREFIX_MATCH, match)
    return produced
