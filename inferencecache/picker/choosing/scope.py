"""Where to look for a model: the pool that a Pick names, and the model that is meant."""

import msgspec

from inferencecache.picker.choice import Outcome, Question, Refusal
from inferencecache.picker.choosing.fleet_index import FleetIndex, PoolIndex, TierMatch
from inferencecache.picker.choosing.rewriting import Rewriting
from inferencecache.picker.fleet import ObjectName, PickerPolicy
from inferencecache.picker.request import BodyFlaw


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a question is about.

    Attributes:
        pool: Where to look.
        model: What to look for, after rules and defaults.
        matches: The tiers that have it; at least one.
        policies: The rules of its fleet.
        is_skewed: Whether the caller has seen another version of the pool.
        is_default: Whether the pool's default stands in.
    """

    pool: PoolIndex
    model: str
    matches: tuple[TierMatch, ...]
    policies: tuple[PickerPolicy, ...] = ()
    is_skewed: bool = False
    is_default: bool = False


UNKNOWN_POOL = Refusal(outcome=Outcome.NO_WORKERS, reason="pool=unknown")
UNKNOWN_MODEL = Refusal(outcome=Outcome.NO_WORKERS, reason="model=unknown")


def scope_of(
    question: Question, index: FleetIndex, rewriting: Rewriting, default_namespace: str
) -> Scope | Refusal:
    """Return where *question* leads, or why nowhere.

    Args:
        question: Names a pool, or none, and a model.
        index: The fleet in force.
        rewriting: Its rewriting rules.
        default_namespace: Of pools that are named without one.
    """
    found = _pool(question, index, default_namespace)
    if found is None:
        return UNKNOWN_POOL
    pool, is_skewed = found
    requested = question.request.model
    key = None if question.pool is None else pool.pool.key
    model = rewriting.target(requested, key)
    matches = pool.matches(model)
    is_default = False
    if not matches and pool.pool.default_model:
        model, is_default = pool.pool.default_model, True
        matches = pool.matches(model)
    if matches:
        return Scope(
            pool=pool,
            model=model,
            matches=matches,
            policies=index.fleet.policies,
            is_skewed=is_skewed,
            is_default=is_default,
        )
    if model:
        return UNKNOWN_MODEL
    flaw = BodyFlaw.MODEL_MISSING if question.request.lacks_model else BodyFlaw.MODEL_EMPTY
    return Refusal(outcome=Outcome.BAD_REQUEST, reason=f"body={flaw.value}")


def _pool(
    question: Question, index: FleetIndex, default_namespace: str
) -> tuple[PoolIndex, bool] | None:
    named = question.pool
    if named is None:
        return index.everything, False
    pool = index.pools.get(
        ObjectName(namespace=named.namespace or default_namespace, name=named.name)
    )
    if pool is None:
        return None
    loaded = pool.pool.resource_version
    return pool, bool(loaded and named.resource_version and loaded != named.resource_version)
