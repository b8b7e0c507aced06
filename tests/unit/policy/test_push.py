"""Reading policy pushes."""

import json

import pytest

from inferencecache.errors import InvalidRequestError
from inferencecache.policy import (
    CachePolicy,
    PolicyPushError,
    PolicySnapshot,
    Strategy,
    TenantQuota,
    decode_policy_push,
)
from inferencecache.settings.policy import PolicySettings


def push(version: object = 7, **policy: object) -> bytes:
    """Return a push with one policy for team-a."""
    return json.dumps(
        {"version": version, "policies": [{"namespace": "team-a", **policy}]}
    ).encode()


def pushed(version: int = 7, **policy: object) -> CachePolicy:
    """Return the only policy of a push as decoded."""
    (decoded,) = decode_policy_push(push(version, **policy)).policies
    return decoded


def test_every_member_of_version_7() -> None:
    """All members are read as they are."""
    body = b"""{"version": 7,
      "policies": [{"namespace": "team-a", "evictionTTL": 900000000000, "minimumPrefixTokens": 32,
        "minimumMatchedTokens": 16, "routingFloorScore": 0.1, "lookupTimeoutMs": 25,
        "affinityRouting": false, "eviction": "lfu",
        "strategy": {"enableChainMatching": true, "requireChain": true, "enableTenantHot": false}}],
      "tenants": [{"tenantID": "team-a", "maxIndexEntries": 1000, "isolationMode": "Fairness"}]}"""

    snapshot = decode_policy_push(body)

    assert snapshot == PolicySnapshot(
        policies=(
            CachePolicy(
                namespace="team-a",
                eviction="lfu",
                eviction_ttl_ns=900_000_000_000,
                minimum_prefix_tokens=32,
                minimum_matched_tokens=16,
                routing_floor_score=0.10000000149011612,
                lookup_timeout_ms=25,
                affinity_routing=False,
                strategy=Strategy(
                    enable_chain_matching=True, require_chain=True, enable_tenant_hot=False
                ),
            ),
        ),
        tenants=(
            TenantQuota(tenant_id="team-a", max_index_entries=1000, isolation_mode="Fairness"),
        ),
    )


@pytest.mark.parametrize(
    "body",
    [
        b'{"version":7}',
        b'{"version":7,"policies":null,"tenants":null}',
        b' \n{"VERSION":7,"Policies":[],"tenants":[]}\r\n\t',
    ],
)
def test_an_empty_push_is_allowed(body: bytes) -> None:
    """A push without policies and tenants is an empty snapshot."""
    assert decode_policy_push(body) == PolicySnapshot()


def test_null_means_absent_everywhere() -> None:
    """Null members, and a null element, are like missing ones."""
    body = b"""{"version": 7, "tenants": [{"tenantID": null, "maxIndexEntries": null}, null],
      "policies": [{"namespace": "a", "evictionTTL": null, "minimumPrefixTokens": null,
        "minimumMatchedTokens": null, "routingFloorScore": null, "lookupTimeoutMs": null,
        "affinityRouting": null, "eviction": null, "strategy": null}, null]}"""

    snapshot = decode_policy_push(body)

    assert snapshot.policies == (CachePolicy(namespace="a"), CachePolicy(namespace=""))
    assert snapshot.tenants == (TenantQuota(tenant_id=""), TenantQuota(tenant_id=""))


def test_keys_match_in_any_case_and_the_last_duplicate_counts() -> None:
    """Upper and lower case name the same key, also across duplicates."""
    body = b"""{"Version": 99, "version": 7,
      "POLICIES": [{"NAMESPACE": "a", "evictionttl": 1, "EvictionTTL": 2,
        "STRATEGY": {"requirechain": false, "RequireChain": true}}]}"""

    (policy,) = decode_policy_push(body).policies

    assert policy.eviction_ttl_ns == 2
    assert policy.strategy == Strategy(require_chain=True)


def test_duplicate_tenants_are_kept_for_the_store_to_settle() -> None:
    """The snapshot shows what was pushed."""
    body = b'{"version":7,"tenants":[{"tenantID":"a","maxIndexEntries":1},{"tenantID":"a"}]}'

    assert [tenant.max_index_entries for tenant in decode_policy_push(body).tenants] == [1, 0]


@pytest.mark.parametrize(
    ("version", "sent", "expected"),
    [(3, 0, 64), (3, 5, 5), (3, -1, -1), (4, 0, 0), (5, 0, 0), (6, 0, 0), (7, 0, 0)],
)
def test_version_3_cannot_say_a_minimum_of_0(version: int, sent: int, expected: int) -> None:
    """Before version 4 a minimum of 0 matched tokens becomes the default; negatives stay."""
    assert pushed(version, minimumMatchedTokens=sent).minimum_matched_tokens == expected


def test_version_3_takes_the_configured_minimum() -> None:
    """The default filled in is the setting."""
    settings = PolicySettings(minimum_matched_tokens=7)

    (policy,) = decode_policy_push(push(3), settings).policies

    assert policy.minimum_matched_tokens == 7


@pytest.mark.parametrize("version", [3, 4, 5, 6, 7])
def test_every_supported_version_is_accepted(version: int) -> None:
    """Versions 3 to 7 are read, with unset members left to their defaults."""
    policy = pushed(version, eviction="lfu")

    assert policy.eviction == "lfu"
    assert (policy.routing_floor_score, policy.strategy, policy.affinity_routing) == (None,) * 3


@pytest.mark.parametrize(
    "body",
    [push(2), push(8), push(99), push(0), push(-1), b"{}", b"null", b'{"version":null}'],
)
def test_other_versions_are_refused(body: bytes) -> None:
    """Versions outside 3 to 7, or no version, give the one-line answer."""
    with pytest.raises(PolicyPushError) as caught:
        decode_policy_push(body)

    assert str(caught.value) == "unsupported policy snapshot version"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evictionTTL", 2**63 - 1),
        ("evictionTTL", -(2**63)),
        ("minimumPrefixTokens", 2**31 - 1),
        ("minimumMatchedTokens", -(2**31)),
        ("lookupTimeoutMs", 0),
        ("routingFloorScore", 3.4028234663852886e38),
        ("routingFloorScore", -3.4028234663852886e38),
        ("routingFloorScore", 5),
        ("routingFloorScore", 0),
        ("eviction", "nonsense"),
    ],
)
def test_extreme_values_are_accepted(field: str, value: object) -> None:
    """Numbers up to the limits of their wire type are read."""
    pushed(**{field: value})


@pytest.mark.parametrize(
    ("fragment", "field"),
    [
        ('"evictionTTL":1.5', "evictionTTL"),
        ('"evictionTTL":1e9', "evictionTTL"),
        ('"evictionTTL":1.0', "evictionTTL"),
        ('"evictionTTL":"30m"', "evictionTTL"),
        ('"evictionTTL":true', "evictionTTL"),
        ('"evictionTTL":9223372036854775808', "evictionTTL"),
        ('"minimumPrefixTokens":2147483648', "minimumPrefixTokens"),
        ('"minimumMatchedTokens":-2147483649', "minimumMatchedTokens"),
        ('"lookupTimeoutMs":"25"', "lookupTimeoutMs"),
        ('"routingFloorScore":3.5e38', "routingFloorScore"),
        ('"routingFloorScore":1e999', "routingFloorScore"),
        ('"routingFloorScore":"0.1"', "routingFloorScore"),
        ('"routingFloorScore":false', "routingFloorScore"),
        ('"affinityRouting":"Enabled"', "affinityRouting"),
        ('"affinityRouting":1', "affinityRouting"),
        ('"eviction":1', "eviction"),
        ('"namespace":["a"]', "namespace"),
        ('"strategy":[]', "strategy"),
        ('"strategy":{"requireChain":0}', "strategy.requireChain"),
    ],
)
def test_values_of_the_wrong_kind_are_refused(fragment: str, field: str) -> None:
    """A wrong value is refused by its dotted path."""
    with pytest.raises(PolicyPushError) as caught:
        decode_policy_push(f'{{"version":7,"policies":[{{{fragment}}}]}}'.encode())

    assert caught.value.field == f"policies[0].{field}"
    assert str(caught.value).startswith(f"decode policy snapshot: policies[0].{field}: ")


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b'{"version":7,"extra":1}', "body: unknown field 'extra'"),
        (b'{"version":7,"policies":[{"extra":null}]}', "policies[0]: unknown field 'extra'"),
        (
            b'{"version":7,"policies":[{"strategy":{"x":true}}]}',
            "policies[0].strategy: unknown field 'x'",
        ),
        (b'{"version":7,"tenants":[{},{"quota":1}]}', "tenants[1]: unknown field 'quota'"),
        (b'{"version":99,"extra":1}', "body: unknown field 'extra'"),
        (b'{"version":7,"\\ud800":1}', "body: unknown field '\\ud800'"),
    ],
)
def test_unknown_keys_are_refused_at_every_level(body: bytes, where: str) -> None:
    """A key nobody knows is named with the place where it stands."""
    with pytest.raises(PolicyPushError) as caught:
        decode_policy_push(body)

    assert str(caught.value) == f"decode policy snapshot: {where}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "Expecting value"),
        (b"not json", "Expecting value"),
        (b"[]", "body: an array is not allowed; expected an object"),
        (b"7", "body: 7 is not allowed; expected an object"),
        (b'{"version":7} x', "trailing content after the first JSON value"),
        (b'{"version":7}{"version":7}', "trailing content after the first JSON value"),
        (b'{"version":NaN}', "NaN is not a JSON number"),
        (b'{"version":-Infinity}', "-Infinity is not a JSON number"),
        (b"\xff\xfe", "the body is not UTF-8"),
        ('{"version":7}'.encode("utf-16"), "the body is not UTF-8"),
        (b'\xef\xbb\xbf{"version":7}', "Unexpected UTF-8 BOM"),
        (b"[" * 500_000, "nested too deeply"),
        (b'{"version":' * 50_000, "nested too deeply"),
        (b'{"version":' + b"9" * 5_000 + b"}", "a number has too many digits"),
        (b'{"version":7,"policies":[{"namespace":"\\udc00"}]}', "a string holds half of"),
        (b'{"version":"7"}', "version: '7' is not allowed; expected an integer"),
        (b'{"version":7.0}', "version: 7.0 is not allowed; expected an integer"),
        (b'{"version":7,"policies":{}}', "policies: an object is not allowed"),
        (b'{"version":7,"policies":[1]}', "policies[0]: 1 is not allowed; expected an object"),
        (b'{"version":7,"tenants":""}', "tenants: '' is not allowed; expected an array"),
        (b'{"version":7,"tenants":[{"maxIndexEntries":0.5}]}', "tenants[0].maxIndexEntries: 0.5"),
    ],
)
def test_other_bodies_are_refused(body: bytes, reason: str) -> None:
    """Whatever is wrong is said in one line."""
    with pytest.raises(InvalidRequestError) as caught:
        decode_policy_push(body)

    assert str(caught.value).startswith(f"decode policy snapshot: {reason}")


def test_escaped_pairs_are_one_character() -> None:
    """A surrogate pair is a character and accepted, as is any other."""
    body = b'{"version":7,"tenants":[{"tenantID":"\\ud83d\\ude00\xc3\xa9"}]}'

    assert decode_policy_push(body).tenants[0].tenant_id == "\U0001f600é"


def test_long_values_are_shortened_in_messages() -> None:
    """A message never repeats more than a line of what was sent."""
    with pytest.raises(PolicyPushError) as caught:
        decode_policy_push(push(affinityRouting="x" * 100_000))

    assert len(str(caught.value)) < 250


def test_the_size_limit_is_inclusive() -> None:
    """A body of exactly the limit is read, one byte more is not."""
    limit = PolicySettings().push_body_bytes_max
    body = b'{"version":7}'
    largest = body + b" " * (limit - len(body))

    assert decode_policy_push(largest) == PolicySnapshot()
    with pytest.raises(PolicyPushError) as caught:
        decode_policy_push(largest + b" ")
    assert str(caught.value) == "decode policy snapshot: http: request body too large"


def test_twenty_thousand_policies_are_too_many() -> None:
    """A push of 20,000 policies exceeds the default limit."""
    policies = [
        {"namespace": f"team-{n:06d}", "evictionTTL": 60_000_000_000} for n in range(20_000)
    ]

    with pytest.raises(PolicyPushError):
        decode_policy_push(json.dumps({"version": 7, "policies": policies}).encode())
