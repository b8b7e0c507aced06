"""The state and the conditions that a picker's object shows.

Rules of this file
    1. The state is the first word, which the files decide, and for what is picked the qualifiers,
       which its traffic decides, in the order of their list.
    2. ``Accepted`` and ``ResolvedRefs`` say what is wrong with the object or with what it refers
       to. ``Ready`` says whether a request could go there at all.
    3. A pool whose objects are all right may still be ranked by a profile that no plugins have;
       that is a state of its own, which their configuration decides.
    4. Suppression changes no condition: it is over in a while without anybody's doing.
"""

from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from inferencecache.picker.fleet import Qualifier
from inferencecache.resources import ObjectKey, ObjectState
from inferencecache.resources.inference_pool import PoolState
from inferencecache.resources.member_states import POOL, PROVIDER, MemberState
from inferencecache.resources.pool_spec import InferencePoolSpec

_OWN_REFERENCE: Final = frozenset({MemberState.INCOMPLETE, MemberState.UNSUPPORTED_API_FORMAT})
_BROKEN: Final = (Qualifier.BACKEND_UNRESOLVED, Qualifier.BACKEND_UNAUTHORIZED)
_REFERENCES_MISSING: Final = frozenset({PoolState.MEMBERS_MISSING, PoolState.PROFILE_MISSING})
_BACKEND_MESSAGE: Final = {
    Qualifier.BACKEND_UNRESOLVED: "callers report that they cannot find the backend",
    Qualifier.BACKEND_UNAUTHORIZED: "callers report that the provider refuses their key",
}


class ConditionType(StrEnum):
    """Aspects of a state."""

    ACCEPTED = "Accepted"
    RESOLVED_REFS = "ResolvedRefs"
    READY = "Ready"


class Aspect(NamedTuple):
    """A condition without its time.

    Attributes:
        type: Which aspect.
        status: ``True``, ``False`` or ``Unknown``.
        reason: One word.
        message: One sentence, empty for the normal case.
    """

    type: ConditionType
    status: str
    reason: str
    message: str = ""


def state_text(state: ObjectState, qualifiers: Iterable[Qualifier]) -> str:
    """Return the state as one text.

    >>> state_text(ObjectState("Accepted"), [Qualifier.SUPPRESSED])
    'Accepted,Suppressed'

    Args:
        state: What became of the object.
        qualifiers: What happens to it, in any order.
    """
    said = set(qualifiers)
    return ",".join([state.name, *(each for each in Qualifier if each in said)])


def state_by_profiles(
    state: ObjectState, spec: msgspec.Struct, profiles: Collection[str] | None
) -> ObjectState:
    """Return *state*, or what it becomes by the profiles that the tiers of a pool name.

    Args:
        state: What became of an object by the objects alone.
        spec: What it says.
        profiles: The profiles that there are; None if that is unknown.
    """
    if profiles is None or state.name != PoolState.ACCEPTED:
        return state
    if not isinstance(spec, InferencePoolSpec):
        return state
    for tier in spec.tiers or ():
        if tier.profile and tier.profile not in profiles:
            return ObjectState(
                PoolState.PROFILE_MISSING,
                PoolState.PROFILE_MISSING,
                f"tier {tier.name} is ranked by the profile {tier.profile}, which the "
                f"configuration of plugins does not have ({', '.join(profiles) or 'it has none'}); "
                "estimated times rank it instead",
            )
    return state


def aspects_of(
    key: ObjectKey, state: ObjectState, qualifiers: frozenset[Qualifier], accepted_members: int = 0
) -> Iterator[Aspect]:
    """Yield the conditions of an object.

    Args:
        key: The object.
        state: What became of it.
        qualifiers: What happens to it.
        accepted_members: Of a pool, how many members are picked.
    """
    if key.kind == POOL:
        yield from _of_pool(state, accepted_members)
        return
    is_accepted = state.name == MemberState.ACCEPTED
    yield Aspect(ConditionType.ACCEPTED, str(is_accepted), state.name, state.message)
    if key.kind == PROVIDER:
        yield _resolved_refs(state, qualifiers)
    broken = next((each for each in _BROKEN if each in qualifiers), None)
    if not is_accepted:
        yield Aspect(ConditionType.READY, "False", state.name, state.message)
    elif broken is not None:
        yield Aspect(ConditionType.READY, "False", broken, _BACKEND_MESSAGE[broken])
    else:
        yield Aspect(ConditionType.READY, "True", "Ready")


def _resolved_refs(state: ObjectState, qualifiers: frozenset[Qualifier]) -> Aspect:
    if state.name == MemberState.CROSS_NAMESPACE_NOT_GRANTED:
        return Aspect(ConditionType.RESOLVED_REFS, "False", state.reason, state.message)
    if Qualifier.BACKEND_UNRESOLVED in qualifiers:
        found = Qualifier.BACKEND_UNRESOLVED
        return Aspect(ConditionType.RESOLVED_REFS, "False", found, _BACKEND_MESSAGE[found])
    if state.name in _OWN_REFERENCE:
        return Aspect(ConditionType.RESOLVED_REFS, "Unknown", state.name, state.message)
    return Aspect(ConditionType.RESOLVED_REFS, "True", "ResolvedRefs")


def _of_pool(state: ObjectState, accepted_members: int) -> Iterator[Aspect]:
    is_complete = state.name != PoolState.INCOMPLETE
    yield Aspect(
        ConditionType.ACCEPTED,
        str(is_complete),
        PoolState.ACCEPTED if is_complete else state.name,
        "" if is_complete else state.message,
    )
    is_missing = state.name in _REFERENCES_MISSING
    yield Aspect(
        ConditionType.RESOLVED_REFS,
        str(not is_missing),
        state.reason if is_missing else "ResolvedRefs",
        state.message if is_missing else "",
    )
    yield Aspect(
        ConditionType.READY,
        str(accepted_members > 0),
        "Ready" if accepted_members else "NoMembers",
        "" if accepted_members else "no member is accepted",
    )
