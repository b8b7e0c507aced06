"""Scores, the order that comes of them, and the endpoint that is tried."""

from typing import NamedTuple

import msgspec

from inferencecache.picker.pipeline.endpoint import EndpointView


class Scored(NamedTuple):
    """An endpoint and what it is ranked by.

    Attributes:
        endpoint: Which one.
        score: Sum of its weighted scores, the more the better; where no profile ranks, milliseconds
            to the first token, the fewer the better.
    """

    endpoint: EndpointView
    score: float


class ScorePart(NamedTuple):
    """What one scorer made of all endpoints, to be shown to people.

    Attributes:
        scorer: Its name.
        weight: Its weight in the profile.
        scores: From 0 to 1, in the order of the endpoints that were scored.
    """

    scorer: str
    weight: float
    scores: tuple[float, ...]


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """Endpoints in the order in which to try them.

    Attributes:
        profile: Name of the profile that made it; empty if it came another way.
        order: Best first; empty if the filters left none.
        scored: The endpoints behind the filters, as :attr:`parts` counts them.
        parts: Where the scores come from.
    """

    profile: str
    order: tuple[Scored, ...]
    scored: tuple[EndpointView, ...] = ()
    parts: tuple[ScorePart, ...] = ()


class SchedulingResult(msgspec.Struct, frozen=True, kw_only=True):
    """What PreRequest plugins are told.

    Attributes:
        endpoint: The one that was chosen.
        ranking: How it was chosen.
    """

    endpoint: EndpointView
    ranking: Ranking
