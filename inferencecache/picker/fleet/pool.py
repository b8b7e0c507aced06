"""Pools: members in tiers, and how a tier is ranked."""

from dataclasses import dataclass
from enum import StrEnum

from inferencecache.picker.fleet.member import Member, ObjectName


class RankBy(StrEnum):
    """By what the candidates of a tier are put in order."""

    ESTIMATED_TTFT = "EstimatedTTFT"
    PREDICTED_TTFT = "PredictedTTFT"
    PROFILE = "Profile"


class ContextOverflow(StrEnum):
    """What becomes of a request that fits no candidate's context window."""

    LARGEST = "Largest"
    """It goes where most would fit, and the engine refuses it in words that clients know."""
    REJECT = "Reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Members that are tried together.

    Attributes:
        name: Its name in the pool.
        rank_by: How its candidates are put in order.
        profile: Name of the scheduling profile for :attr:`RankBy.PROFILE`; else empty.
        members: All that belong to it.
        saturation_max: At which share of its members' concurrency it counts as full.
        explores: Whether now and then a request goes to the candidate with the oldest evidence.
        is_rank_default: Whether nobody said how to rank these engines; plugins that have a profile
            then decide.
    """

    name: str
    rank_by: RankBy
    profile: str
    members: tuple[Member, ...]
    saturation_max: float
    explores: bool = False
    is_rank_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A group of members that a Pick may name.

    Attributes:
        key: Its namespace and name.
        tiers: In the order in which they are tried.
        default_model: Stands in where a body names none that is served; empty for none.
        context_overflow: What becomes of a request that fits nowhere.
        spills_to_providers: Whether a request that cannot wait goes on to a provider because the
            workers before it have all they can do.
        resource_version: Of the object that was loaded; empty if it says none.
    """

    key: ObjectName
    tiers: tuple[Tier, ...]
    default_model: str = ""
    context_overflow: ContextOverflow = ContextOverflow.LARGEST
    spills_to_providers: bool = False
    resource_version: str = ""
