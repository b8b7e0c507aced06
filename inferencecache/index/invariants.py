"""Recount the index from its runs and compare with every counter and order it keeps."""

from collections import Counter
from collections.abc import Iterator

from inferencecache.index.packing import OVERHEAD, is_uniform
from inferencecache.index.partition import RUN_BLOCKS_MAX, Partition
from inferencecache.index.run import Hold, Run
from inferencecache.index.tenancy import Ledger, ModelState, ScopeState, TenantState


def check_ledger(ledger: Ledger) -> None:
    """Check every rule of the structure.

    Raises:
        AssertionError: Naming the rule that does not hold.

    Complexity: O(everything held).
    """
    tenants = [tenant for tenant in ledger.tenants.values() if not tenant.is_reserved]
    for tenant in ledger.tenants.values():
        _check_tenant(tenant)
    assert ledger.keys == sum(tenant.keys for tenant in tenants), "keys over all tenants"
    assert ledger.entries == sum(tenant.entries for tenant in tenants), "entries over all tenants"
    by_model: Counter[str] = Counter()
    for tenant in tenants:
        for model in tenant.models.values():
            by_model[model.model_id] += model.keys
    assert +by_model == +Counter(ledger.keys_by_model), "keys by model"
    heads = ledger.heads()
    assert len(heads) <= len(tenants), "at most one place per tenant among the heads"
    assert all(ledger.tenants.get(head.tenant_id) is head for head in heads), "heads are tenants"
    assert all(ledger.tenants.get(used.tenant_id) is used for used in ledger.used), "used tenants"
    records = sum(len(m.stats) for t in ledger.tenants.values() for m in t.models.values())
    assert ledger.stats_records == records, "statistics records"
    asked = {
        (tenant.tenant_id, model.model_id, replica_id): record
        for tenant in tenants
        for model in tenant.models.values()
        for replica_id, record in model.stats.items()
        if record.stats.t2_query_tokens > 0
    }
    assert ledger.tier2_records == asked, "records of replicas whose offload tier is asked"


def _check_tenant(tenant: TenantState) -> None:
    models = tenant.models.values()
    assert models, f"empty tenant {tenant.tenant_id!r} survives"
    for model in models:
        _check_model(model)
    assert tenant.keys == sum(model.keys for model in models), "keys of the tenant"
    assert tenant.entries == sum(model.entries for model in models), "entries of the tenant"
    runs = {run: None for model in models for run in _runs(model)}
    holds = [hold for run in runs for hold in run.holds.values()]
    ordered = tenant.ages.holds()
    assert Counter(map(id, holds)) == Counter(map(id, ordered)), "each hold is ordered once"
    if tenant.ages.follows_runs:
        assert Counter(map(id, runs)) == Counter(map(id, tenant.ages.runs())), "runs are ordered"
        for run in runs:
            newest = max(hold.last_seen_ns for hold in run.holds.values())
            assert run.newest_ns == newest, "a run's newest stamp"
            orders = [h.order for h in run.holds.values() if h.last_seen_ns == newest]
            assert run.newest_order == max(orders), "a run's place among those of its age"
    records = [record for model in models for record in model.stats.values()]
    assert Counter(map(id, records)) == Counter(map(id, tenant.stats_order.items()))


def _check_model(model: ModelState) -> None:
    scopes = model.scopes.values()
    assert scopes or model.stats, f"empty model {model.model_id!r} survives"
    for scope in scopes:
        _check_scope(scope)
    keys = sum(part.run_of.blocks for scope in scopes for part in scope.partitions.values())
    assert model.keys == keys, "keys of the model"
    assert model.entries == sum(who.entries for who in model.incarnations.values())
    for replica_id, incarnation in model.incarnations.items():
        assert incarnation.replica_id == replica_id
        assert not incarnation.is_cleared, "a cleared life is not current"
        holds = list(incarnation.holds())
        assert holds, "a replica without holds survives"
        assert len(set(holds)) == len(holds) == incarnation.held, "holds of a replica"
        blocks = sum(hold.run.length for hold in holds)
        assert incarnation.entries == blocks, "entries of a replica"
        spread = Counter(hold.run.partition for hold in holds)
        assert incarnation.partitions == dict(spread), "partitions of a replica"
        newest = max(hold.last_seen_ns for hold in holds)
        assert not incarnation.is_newest_exact or incarnation.newest_ns == newest


def _check_scope(scope: ScopeState) -> None:
    assert scope.partitions, f"empty scope {scope.hash_scheme!r} survives"
    serving: Counter[str] = Counter()
    for partition in scope.partitions.values():
        _check_partition(partition)
        for hold in _holds(partition):
            if not hold.incarnation.is_cleared:
                serving[hold.incarnation.replica_id] += hold.run.length
    assert scope.serving == dict(serving), "serving counts"
    assert list(scope.replicas()) == sorted(serving), "sorted serving replicas"


def _check_partition(partition: Partition) -> None:
    assert partition.run_of.blocks, f"empty partition {partition.adapter_id!r} survives"
    blocks = 0
    for run in partition.run_of.runs():
        _check_run(partition, run)
        blocks += run.length
    assert blocks == partition.run_of.blocks, "each block is in exactly one run"


def _check_run(partition: Partition, run: Run) -> None:
    hashes = run.hashes()
    assert len(hashes) == run.length == len(run.token_counts) > 0, "lengths of a run"
    assert run.length <= RUN_BLOCKS_MAX, "a run's length is bounded"
    assert run.partition is partition, "a run knows its partition"
    assert all(partition.run_of.get(block_hash) is run for block_hash in hashes), "run_of names it"
    if run.length > 1:
        assert len(run.packed) == run.length * run.stride, "packed blocks of one width"
        assert is_uniform(run.packed, run.stride - OVERHEAD), "packed blocks of one width"
    assert run.holds, "a run without holds survives"
    for incarnation, hold in run.holds.items():
        assert hold.incarnation is incarnation, "a hold knows its holder"
        assert hold.run is run, "a hold knows its run"
        following = hold.after
        known = incarnation.last if following is None else following.before
        assert known is hold, "a holder knows its holds"
        assert hold.tier == 1 or run.is_tiered, "the run knows of colder tiers"
        assert hold.token_counts is None or len(hold.token_counts) == run.length
    assert run.root is None or run in (run.root.heirs or ()), "heirs are known"
    assert run.heirs is None or (run.heirs and all(h.root is run and h.length for h in run.heirs))
    right = run.following
    assert right is None or right.partition is partition or not right.length


def _runs(model: ModelState) -> Iterator[Run]:
    for scope in model.scopes.values():
        for partition in scope.partitions.values():
            yield from partition.run_of.runs()


def _holds(partition: Partition) -> Iterator[Hold]:
    for run in partition.run_of.runs():
        yield from run.holds.values()
