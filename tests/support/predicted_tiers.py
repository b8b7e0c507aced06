"""Tiers that are ranked by predictions, and reports for those to rest on."""

from dataclasses import replace

from fleets import tier

from inferencecache.picker.choice import Choice
from inferencecache.picker.decisions import Ending, FirstTokenReport
from inferencecache.picker.fleet import RankBy, Tier


def predicted(name: str, *members: object, explores: bool = False) -> Tier:
    """Return a tier that is ranked by predictions."""
    plain = tier(name, *members)
    return replace(plain, rank_by=RankBy.PREDICTED_TTFT, explores=explores)


def report(choice: Choice, ttft_ms: int, status: int = 200) -> None:
    """Let a request be answered, to its end."""
    follower = choice.follower
    assert follower is not None
    follower.first_token(FirstTokenReport(observed_ttft_ms=ttft_ms, upstream_status=status))
    follower.ended(Ending.FINISHED, None)
