"""The client without a server: the same results as over the wire."""

import pytest

from inferencecache.client import (
    CacheTier,
    CacheUpdate,
    ClientSettings,
    ConfigurationWarning,
    FailOpenCause,
    HeldPrefix,
    LookupQuery,
    ReasonCode,
    ReplicaRef,
    StatsReport,
)
from inferencecache.client.in_process import InProcessClient
from inferencecache.client.local_plane import LocalSettings, local_plane
from inferencecache.clock import NS_PER_S, ManualClock
from inferencecache.settings.policy import PolicySettings

TOKENS = list(range(128))


def held(replica_id: str, token_ids: list[int], **options: object) -> CacheUpdate:
    """Return an update in which a replica holds the chain of some tokens."""
    chained = ask(token_ids)
    prefix = HeldPrefix(
        block_hashes=chained.block_hashes, block_token_counts=chained.block_token_counts, **options
    )
    return CacheUpdate(
        replica=ReplicaRef("t", "m", replica_id), hash_scheme="vllm", prefixes=[prefix]
    )


def ask(token_ids: list[int], **changes: str) -> LookupQuery:
    """Return a fingerprinted query."""
    key = {"tenant_id": "t", "model_id": "m", "hash_scheme": "vllm"} | changes
    return LookupQuery(token_ids=token_ids, **key).fingerprinted(16)


@pytest.fixture
def client() -> InProcessClient:
    """Return a client whose plane knows two replicas, one of them warm for the tokens."""
    client = InProcessClient(local_plane(clock=ManualClock(NS_PER_S)))
    client.reporter().report(held("warm", TOKENS))
    client.reporter().report(held("other", [9] * 64))
    return client


def test_match_is_found(client: InProcessClient) -> None:
    """A reported chain is a match, with the numbers of the server's answer."""
    result = client.lookup(ask(TOKENS))

    assert result.reason_code is ReasonCode.PREFIX_MATCH
    assert [hint.replica_id for hint in result.hints] == ["warm"]
    assert result.hints[0].matched_tokens == 128
    assert result.hints[0].tier is CacheTier.T1
    assert client.choose(ask(TOKENS), eligible={"other"}) is None


def test_token_ids_are_fingerprinted_by_the_plane(client: InProcessClient) -> None:
    """Tokens sent as they are find the same replica."""
    query = LookupQuery(tenant_id="t", model_id="m", hash_scheme="vllm", token_ids=TOKENS)

    assert client.choose(query).replica_id == "warm"


def test_eviction_and_clear_take_effect_at_once(client: InProcessClient) -> None:
    """Removals are seen by the next lookup."""
    reporter = client.reporter()
    chain = ask(TOKENS).block_hashes

    reporter.evict(ReplicaRef("t", "m", "warm"), chain[5:])
    evicted = client.lookup(ask(TOKENS)).hints[0].matched_tokens
    reporter.clear(ReplicaRef("t", "m", "warm"))
    reporter.flush()
    cleared = client.lookup(ask(TOKENS))

    assert evicted == 80
    assert cleared.reason_code is ReasonCode.AFFINITY_HINT
    assert [hint.replica_id for hint in cleared.hints] == ["other"]


def test_single_hashes_and_stats_are_reported() -> None:
    """A prefix by one hash, tiers, adapters and statistics reach the index."""
    settings = LocalSettings(policy=PolicySettings(minimum_matched_tokens=0))
    client = InProcessClient(local_plane(settings, ManualClock(NS_PER_S)))
    client.reporter().report(
        CacheUpdate(
            replica=ReplicaRef("t", "m", "r1"),
            hash_scheme="vllm",
            prefixes=[
                HeldPrefix(prefix_hash=b"p", token_count=100, tier=CacheTier.T2, adapter_id="sql")
            ],
            stats=StatsReport(hit_rate=0.5),
        )
    )

    query = LookupQuery(
        tenant_id="t", model_id="m", hash_scheme="vllm", adapter_id="sql", prefix_hash=b"p"
    )
    hint = client.choose(query)

    assert (hint.replica_id, hint.matched_tokens, hint.tier) == ("r1", 100, CacheTier.T2)
    assert client.plane.cache_state("t", "m").replicas[0].stats.hit_rate == 0.5


def test_wrong_key_is_raised_once() -> None:
    """UNKNOWN_* is a warning here as over the wire."""
    raised: list[ConfigurationWarning] = []
    client = InProcessClient(local_plane(), on_warning=raised.append)
    client.reporter().report(held("r1", TOKENS))

    codes = [client.lookup(ask(TOKENS, tenant_id="x")).reason_code for _ in range(2)]

    assert codes == [ReasonCode.UNKNOWN_TENANT] * 2
    assert len(raised) == 1


@pytest.mark.parametrize("deadline_ms", [0, -1])
def test_no_time_is_a_timeout(client: InProcessClient, deadline_ms: int) -> None:
    """With no time left the plane is not asked."""
    result = client.lookup(ask(TOKENS), deadline_ms=deadline_ms)

    assert (result.reason_code, result.cause) == (ReasonCode.TIMEOUT, FailOpenCause.DEADLINE)


def test_token_outside_its_range_fails_open(client: InProcessClient) -> None:
    """A token id the wire could not carry costs the hint, as over the wire."""
    query = LookupQuery(tenant_id="t", model_id="m", hash_scheme="vllm", token_ids=[-1] * 16)

    assert client.lookup(query).cause is FailOpenCause.INVALID_QUERY


def test_settings_apply() -> None:
    """The plane is the caller's own, of default or given settings."""
    client = InProcessClient(settings=ClientSettings(warnings_max=0))

    assert client.lookup(ask(TOKENS)).reason_code is ReasonCode.NO_HINT
