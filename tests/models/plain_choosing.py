"""Who may be chosen, told from the fleet itself: no index, every rule spelt out."""

from collections.abc import Iterator
from dataclasses import dataclass

from inferencecache.picker.fleet import (
    ContextOverflow,
    EndpointRole,
    Member,
    ModelRow,
    PickerPolicy,
    Pool,
    Provider,
    RuleAction,
)


@dataclass(frozen=True)
class PlainCandidate:
    """A place that answers to a name.

    Attributes:
        tier: Number of its tier.
        name: Its address, or the provider's name.
        row: What it would serve.
        weight: Its share.
        is_provider: Whether it is outside of the cluster.
        room: Requests at once; 0 if nobody knows.
    """

    tier: int
    name: str
    row: ModelRow
    weight: float
    is_provider: bool = False
    room: int = 0


def row_of(member: Member, model: str) -> ModelRow | None:
    """Return the row that answers to *model*: by its name, as an adapter, by an alias."""
    kinds = (
        [row for row in member.models if row.name == model and not row.adapter_of],
        [row for row in member.models if row.name == model],
        [row for row in member.models if model in row.aliases],
    )
    return next((rows[0] for rows in kinds if rows), None)


def candidates_of(pool: Pool, model: str) -> list[PlainCandidate]:
    """Return every place that answers to *model*, each once."""
    found: list[PlainCandidate] = []
    for number, tier in enumerate(pool.tiers):
        for member in tier.members:
            row = row_of(member, model)
            for candidate in _places(number, member, row) if row is not None else ():
                if candidate.name not in {other.name for other in found}:
                    found.append(candidate)
    return found


def _places(tier: int, member: Member, row: ModelRow) -> Iterator[PlainCandidate]:
    if isinstance(member, Provider):
        yield PlainCandidate(tier, f"provider:{member.key}", row, 1.0, is_provider=True)
        return
    room = member.priors.concurrency_max
    for endpoint in member.endpoints:
        if endpoint.role is not EndpointRole.PREFILL:
            yield PlainCandidate(tier, endpoint.address, row, endpoint.weight, room=room)


def is_denied(policies: tuple[PickerPolicy, ...], tenant: str, model: str, row: ModelRow) -> bool:
    """Return whether one of *policies* denies *row* to *tenant* who asks for *model*."""
    names = {model, row.name, *row.aliases}
    for policy in policies:
        action = policy.default_action
        for rule in policy.rules:
            if (rule.tenants is None or tenant in rule.tenants) and (
                rule.models is None or rule.models & names
            ):
                action = rule.action
                break
        if action is RuleAction.DENY:
            return True
    return False


def choosable(
    candidates: list[PlainCandidate],
    need: int,
    suppressed: frozenset[str],
    overflow: ContextOverflow,
) -> list[PlainCandidate]:
    """Return those of *candidates*, none of them denied, that may be chosen: the first resort.

    Args:
        candidates: Who answers to the name.
        need: Tokens that have to fit.
        suppressed: Names of those that are left alone.
        overflow: What becomes of what fits nowhere.
    """
    fits = [each for each in candidates if (each.row.context_window or need) >= need]
    free = [each for each in fits if each.name not in suppressed]
    if free:
        return free
    tried = [each for each in fits if not each.is_provider]
    if tried:
        return tried
    if overflow is ContextOverflow.REJECT:
        return []
    small = [each for each in candidates if each not in fits]
    left = [each for each in small if each.name not in suppressed]
    left = left or [each for each in small if not each.is_provider]
    largest = max((each.row.context_window or 0 for each in left), default=0)
    return [each for each in left if each.row.context_window == largest]
