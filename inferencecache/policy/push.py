"""Read a policy push: JSON of schema versions 3 to 7.

Rules of this file: any bytes give a snapshot or a :class:`PolicyPushError`, nothing else. Keys are
known at every level, in any case; of duplicates the last counts.

What the versions brought: 3 eviction, 4 minimumMatchedTokens, 5 routingFloorScore, 6 strategy,
7 affinityRouting. What is null or absent resolves to its default in every version, so only
minimumMatchedTokens, which cannot be null, needs filling in: before version 4 a 0 means "not said".
"""

import json
from dataclasses import replace
from typing import Final, NoReturn

from inferencecache.policy.members import Members
from inferencecache.policy.model import CachePolicy, PolicySnapshot, Strategy, TenantQuota
from inferencecache.policy.push_error import undecodable, unsupported_version
from inferencecache.settings.policy import PolicySettings

VERSION_MIN: Final = 3
VERSION_MAX: Final = 7
_MINIMUM_MATCHED_TOKENS_SINCE: Final = 4

_TOO_LARGE: Final = "http: request body too large"
_DIGITS_MAX: Final = 64


def decode_policy_push(body: bytes, settings: PolicySettings | None = None) -> PolicySnapshot:
    """Return the policies and quotas of a push, as of version 7.

    Args:
        body: The whole request body.
        settings: The size limit, and what an old version leaves unsaid; None means the defaults.

    Raises:
        PolicyPushError: The body is outside the contract; the error's text is the answer.

    Complexity: O(bytes).
    """
    settings = settings or PolicySettings()
    if len(body) > settings.push_body_bytes_max:
        raise undecodable(_TOO_LARGE)
    members = Members(_parse(body), "")
    version = members.int64("version")
    policies = members.array("policies", _policy)
    tenants = members.array("tenants", _tenant)
    members.check_all_read()
    if not VERSION_MIN <= version <= VERSION_MAX:
        raise unsupported_version(version)
    if version < _MINIMUM_MATCHED_TOKENS_SINCE:
        policies = tuple(
            _with_minimum(policy, settings.minimum_matched_tokens) for policy in policies
        )
    return PolicySnapshot(policies=policies, tenants=tenants)


def _parse(body: bytes) -> object:
    """Return the JSON value, objects as dicts with keys in lower case."""
    try:
        parsed: object = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_fold_keys,
            parse_int=_integer,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError as error:
        raise undecodable("the body is not UTF-8") from error
    except RecursionError as error:
        raise undecodable("nested too deeply") from error
    except ValueError as error:
        raise undecodable(_reason(error)) from error
    return parsed


def _fold_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the members of an object by lower-case key, the last duplicate counting."""
    folded = {key.lower(): value for key, value in pairs}
    for value in folded.values():
        if isinstance(value, str) and not value.isascii() and _is_half_a_pair(value):
            raise ValueError("a string holds half of a surrogate pair")
    return folded


def _is_half_a_pair(text: str) -> bool:
    """Tell whether *text* could not be sent as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _integer(digits: str) -> int:
    """Return the integer, unless it is too long for any field."""
    if len(digits) > _DIGITS_MAX:
        raise ValueError("a number has too many digits")
    return int(digits)


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and the infinities, which JSON does not have."""
    raise ValueError(f"{name} is not a JSON number")


def _reason(error: ValueError) -> str:
    """Return what was wrong with the text, in one line."""
    if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
        return "trailing content after the first JSON value"
    return str(error)


def _policy(value: object, path: str) -> CachePolicy:
    """Return one policy."""
    members = Members(value, path)
    policy = CachePolicy(
        namespace=members.text("namespace"),
        eviction=members.text("eviction"),
        eviction_ttl_ns=members.int64("evictionTTL"),
        minimum_prefix_tokens=members.int32("minimumPrefixTokens"),
        minimum_matched_tokens=members.int32("minimumMatchedTokens"),
        routing_floor_score=members.float32("routingFloorScore"),
        lookup_timeout_ms=members.int32("lookupTimeoutMs"),
        affinity_routing=members.flag("affinityRouting"),
        strategy=members.optional("strategy", _strategy),
    )
    members.check_all_read()
    return policy


def _strategy(value: object, path: str) -> Strategy:
    """Return the gates of one policy."""
    members = Members(value, path)
    strategy = Strategy(
        enable_chain_matching=members.flag("enableChainMatching"),
        require_chain=members.flag("requireChain"),
        enable_tenant_hot=members.flag("enableTenantHot"),
    )
    members.check_all_read()
    return strategy


def _tenant(value: object, path: str) -> TenantQuota:
    """Return one quota."""
    members = Members(value, path)
    tenant = TenantQuota(
        tenant_id=members.text("tenantID"),
        max_index_entries=members.int64("maxIndexEntries"),
        isolation_mode=members.text("isolationMode"),
    )
    members.check_all_read()
    return tenant


def _with_minimum(policy: CachePolicy, minimum_matched_tokens: int) -> CachePolicy:
    """Return *policy* with a minimum that its version could not name."""
    if policy.minimum_matched_tokens != 0:
        return policy
    return replace(policy, minimum_matched_tokens=minimum_matched_tokens)
