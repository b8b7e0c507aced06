"""What lookups of one partition share is made once, and never outlives the policies."""

import pytest
from served_plane import MODEL, SCHEME, TENANT

from inferencecache.clock import NS_PER_MS
from inferencecache.policy import CachePolicy, PolicySnapshot, PolicyStore
from inferencecache.service import RouteRequest
from inferencecache.service.gates import GATES
from inferencecache.service.lookup_plan import PLAN_NAMES_CHARS_MAX, PLANS_MAX, LookupPlans
from inferencecache.settings.policy import PolicySettings
from inferencecache.types import PROBE_TENANT_ID, PartitionKey, ReasonCode, Scope

ASKED = RouteRequest(tenant_id=TENANT, model_id=MODEL, hash_scheme=SCHEME, adapter_id="a")
TTL_NS = 1_000_000_000


@pytest.fixture
def policies() -> PolicyStore:
    """Return a store without policies."""
    return PolicyStore(PolicySettings(), TTL_NS)


def replace(policies: PolicyStore, **members: object) -> None:
    """Give the tenant a policy."""
    policy = CachePolicy(namespace=TENANT, **members)  # type: ignore[arg-type] # of the test's own
    policies.replace(PolicySnapshot(policies=(policy,)))


def test_a_plan_names_what_is_asked_about(policies: PolicyStore) -> None:
    """Each name stands in its place."""
    plan = LookupPlans(policies).of(ASKED)

    assert plan.partition == PartitionKey(TENANT, MODEL, SCHEME, "a")
    assert plan.scope == Scope(TENANT, MODEL, SCHEME)
    assert plan.policy is policies.resolved(TENANT)
    assert plan.can_match
    assert not plan.is_reserved
    assert plan.budget_ns is None


@pytest.mark.parametrize("missing", ["tenant_id", "model_id", "hash_scheme"])
def test_without_a_name_nothing_can_match(policies: PolicyStore, missing: str) -> None:
    """The adapter alone may be empty."""
    assert not LookupPlans(policies).of(ASKED._replace(**{missing: ""})).can_match
    assert LookupPlans(policies).of(ASKED._replace(adapter_id="")).can_match


def test_the_reserved_tenant_is_known(policies: PolicyStore) -> None:
    """By its name alone."""
    assert LookupPlans(policies).of(ASKED._replace(tenant_id=PROBE_TENANT_ID)).is_reserved


def test_a_plan_is_made_once(policies: PolicyStore) -> None:
    """The prompt does not matter; each of the four names does."""
    plans = LookupPlans(policies)
    plan = plans.of(ASKED)

    assert plans.of(ASKED._replace(block_hashes=[b"x"], prompt_text="p", ttft_ms=3)) is plan
    for name in PartitionKey._fields:
        assert plans.of(ASKED._replace(**{name: "other"})) is not plan


def test_a_new_policy_makes_a_new_plan(policies: PolicyStore) -> None:
    """Nothing of the old one is used any more."""
    plans = LookupPlans(policies)
    plans.of(ASKED)
    replace(policies, lookup_timeout_ms=7, eviction="lfu", minimum_prefix_tokens=100)
    plan = plans.of(ASKED)

    assert plan.budget_ns == 7 * NS_PER_MS
    assert plan.credits_use
    assert plan.policy is policies.resolved(TENANT)
    assert [gate.name for gate in plan.gates[ReasonCode.TENANT_HOT]] == ["minimum_prefix_tokens"]


def test_gates_that_let_everything_pass_are_left_out(policies: PolicyStore) -> None:
    """All of them stand where a policy closes all."""
    plans = LookupPlans(policies)
    replace(policies, minimum_prefix_tokens=1, minimum_matched_tokens=1, routing_floor_score=1.0)
    assert plans.of(ASKED).gates[ReasonCode.PREFIX_MATCH] == GATES[ReasonCode.PREFIX_MATCH]

    replace(policies, minimum_matched_tokens=0, routing_floor_score=0.0)
    assert plans.of(ASKED).gates[ReasonCode.PREFIX_MATCH] == ()


def test_plans_are_bounded_in_number(policies: PolicyStore) -> None:
    """Clients choose the names, so there is room for so many."""
    plans = LookupPlans(policies)
    first = plans.of(ASKED._replace(model_id="0"))
    for number in range(1, PLANS_MAX):
        plans.of(ASKED._replace(model_id=str(number)))
    assert plans.of(ASKED._replace(model_id="0")) is first

    plans.of(ASKED._replace(model_id="one more"))
    assert plans.of(ASKED._replace(model_id="0")) is not first


def test_plans_of_long_names_are_not_kept(policies: PolicyStore) -> None:
    """A request may be megabytes long, and all of it a name."""
    plans = LookupPlans(policies)
    rest = len(TENANT + SCHEME) + 1
    longest = ASKED._replace(model_id="m" * (PLAN_NAMES_CHARS_MAX - rest))
    too_long = ASKED._replace(model_id="m" * (PLAN_NAMES_CHARS_MAX - rest + 1))

    assert plans.of(longest) is plans.of(longest)
    assert plans.of(too_long) == plans.of(too_long)
    assert plans.of(too_long) is not plans.of(too_long)
