"""Errors say field, value and what is allowed; the words and the models agree."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from resource_texts import load, policy, tenant

from inferencecache.resources import product_kinds
from inferencecache.resources.explain import flaws_of
from inferencecache.resources.schema import schema_of

KINDS = list(product_kinds())


@pytest.mark.parametrize(
    ("text", "field", "value", "allowed"),
    [
        (
            policy("{evicton: LRU}"),
            "spec.evicton",
            "an unknown key",
            "one of the keys affinityRouting, ",
        ),
        (policy("{eviction: lru}"), "spec.eviction", "'lru'", "one of LFU, LRU"),
        (policy("{evictionTTL: 30}"), "spec.evictionTTL", "30", "for example '30m'"),
        (policy("{evictionTTL: 0s}"), "spec.evictionTTL", "'0s'", "a duration above 0"),
        (policy("{evictionTTL: -1s}"), "spec.evictionTTL", "'-1s'", "for example '30m'"),
        (policy("{evictionTTL: 0.1ns}"), "spec.evictionTTL", "'0.1ns'", "a duration above 0"),
        (policy("{evictionTTL: 9999999h}"), "spec.evictionTTL", "'9999999h'", "292 years"),
        (policy("{minimumPrefixTokens: -1}"), "spec.minimumPrefixTokens", "-1", "from 0 to 2147"),
        (policy("{minimumMatchedTokens: 1.0}"), "spec.minimumMatchedTokens", "1.0", "a whole"),
        (policy("{lookupTimeoutMs: 2147483648}"), "spec.lookupTimeoutMs", "2147483648", "from 0"),
        (policy("{lookupTimeoutMs: yes}"), "spec.lookupTimeoutMs", "true", "a whole number"),
        (policy("{routingFloorScore: 0.1}"), "spec.routingFloorScore", "0.1", "a text"),
        (policy("{routingFloorScore: '01'}"), "spec.routingFloorScore", "'01'", "for example"),
        (policy('{routingFloorScore: "1\\n"}'), "spec.routingFloorScore", r"'1\n'", "a text"),
        (policy("{affinityRouting: true}"), "spec.affinityRouting", "true", "one of Disabled, "),
        (policy("{strategy: []}"), "spec.strategy", "a list", "an object"),
        (
            policy("{strategy: {requireChain: 1}}"),
            "spec.strategy.requireChain",
            "1",
            "true or false",
        ),
        (
            policy("{strategy: {requireChain: true, enableChainMatching: false}}"),
            "spec.strategy.requireChain",
            "true",
            "false while enableChainMatching is false",
        ),
        (policy("[]"), "spec", "a list", "an object"),
        (tenant("{}"), "spec.tenantID", "nothing", "a text, not empty"),
        (tenant(""), "spec.tenantID", "nothing", "a text, not empty"),
        (tenant("{tenantID: ''}"), "spec.tenantID", "''", "a text, not empty"),
        (tenant("{tenantID: ~}"), "spec.tenantID", "null", "a text, not empty"),
        (tenant("{tenantID: 7}"), "spec.tenantID", "7", "a text, not empty"),
        (
            tenant("{tenantID: inferencecache.io/probe}"),
            "spec.tenantID",
            "'inferencecache.io/probe'",
            "any tenant but that of the self-test",
        ),
        (
            tenant("{tenantID: a, quota: {maxIndexEntries: -1}}"),
            "spec.quota.maxIndexEntries",
            "-1",
            "from 0",
        ),
        (
            tenant("{tenantID: a, quota: {maxBytes: 1}}"),
            "spec.quota.maxBytes",
            "an unknown key",
            "one of the keys maxIndexEntries",
        ),
        (
            tenant("{tenantID: a, isolationMode: Strict}"),
            "spec.isolationMode",
            "'Strict'",
            "one of Fairness",
        ),
        (tenant("{tenantID: a, crypto: {key: 1}}"), "spec.crypto.key", "an unknown key", "no keys"),
        (policy().replace("v1alpha1", "v1"), "apiVersion", "'inferencecache.io/v1'", "v1alpha1"),
        (policy() + "specs: {}\n", "specs", "an unknown key", "one of the keys apiVersion, kind"),
        (policy(name="A"), "metadata.name", "'A'", "for example 'default'"),
        (policy(namespace="a.b"), "metadata.namespace", "'a.b'", "for example 'team-a'"),
        (
            policy().replace("name:", "labels: {a: 1}, name:"),
            "metadata.labels.a",
            "1",
            "a text",
        ),
        (policy("{eviction: LRU, eviction: LFU}"), "spec.eviction", "'eviction'", "each key once"),
        ("- 1\n", "", "a list", "an object with apiVersion and kind"),
        ("kind: 7\n", "kind", "7", "one of CachePolicy"),
    ],
)
def test_each_error_says_what_would_be_right(
    text: str, field: str, value: str, allowed: str
) -> None:
    """One wrong value, one error, and the object is not accepted."""
    state = load({"a.yaml": text})

    assert not state.objects
    (error,) = state.errors
    assert (error.field, error.value) == (field, value)
    assert allowed in error.allowed
    assert error.place.file == "a.yaml"
    assert error.place.document == 1


def test_null_is_as_good_as_absent() -> None:
    """As in a cluster, for every member that may be left out."""
    members = ", ".join(f"{name}: null" for name in schema_of(KINDS[0].spec)["properties"])

    state = load({"a.yaml": policy("{" + members + "}")})

    assert not state.errors


def test_all_flaws_of_an_object_are_told_at_once() -> None:
    """Nobody wants to find them one reload after the other."""
    state = load({"a.yaml": policy("{eviction: x, evictionTTL: 1, foo: 1}")})

    assert [error.field for error in state.errors] == [
        "spec.eviction",
        "spec.evictionTTL",
        "spec.foo",
    ]
    assert {error.object for error in state.errors} == {"CachePolicy team-a/default"}


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 70)
    | st.integers(2**31 - 2, 2**31 + 1)
    | st.integers(2**63 - 2, 2**63 + 1)
    | st.floats()
    | st.sampled_from(["LRU", "LFU", "Enabled", "Fairness", "30m", "0s", "1h2m", "0.1", "01", ""])
    | st.text(max_size=3)
)


def values_for(schema: dict[str, Any]) -> st.SearchStrategy[object]:
    """Return values of which many are right and many are nearly so."""
    properties = schema.get("properties")
    if properties is None:
        return scalars | st.lists(scalars, max_size=1) | st.just({})
    members = {name: values_for(member) for name, member in properties.items()}
    return (
        st.fixed_dictionaries({}, optional={**members, "surplus": st.none() | st.just(1)}) | scalars
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
@settings(deadline=None)  # the first draw builds the values of a whole kind
@given(data=st.data())
def test_models_and_words_agree(kind: Any, data: st.DataObject) -> None:
    """The model accepts a value exactly if the walk over the schema finds no flaw."""
    schema = schema_of(kind.spec)
    value = data.draw(values_for(schema))

    flaws = list(flaws_of(value, schema, "spec"))

    try:
        msgspec.convert(value, kind.spec)
    except msgspec.ValidationError:
        assert flaws
    else:
        assert not flaws
