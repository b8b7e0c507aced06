"""What documents of the picker's kinds may say, and how a mistake in one is told."""

import json
from pathlib import Path

import pytest
from picker_texts import (
    BACKEND,
    ENDPOINTS,
    GROUP,
    MODELS,
    OURS,
    joined,
    pool,
    provider,
    state_of,
    worker_set,
)
from resource_texts import document, load, names

from inferencecache.resources import product_kinds
from inferencecache.resources.crd import crd_of, json_schema_of

KINDS = product_kinds()
CRDS = Path(__file__).parents[3] / "deploy" / "crds"


def endpoints(text: str) -> str:
    """Return a worker set with these endpoints."""
    return worker_set(f"{{{MODELS}, endpoints: [{text}]}}")


def policy(rules: str) -> str:
    """Return a PickerPolicy."""
    return document("PickerPolicy", "p", f"{{rules: {rules}}}")


def rewrite(rules: str) -> str:
    """Return a ModelRewrite."""
    return document("ModelRewrite", "m", f"{{rules: {rules}}}")


@pytest.mark.parametrize(
    ("text", "field", "value", "allowed"),
    [
        (
            provider(f"{{{BACKEND}, modles: []}}"),
            "spec.modles",
            "an unknown key",
            "one of the keys api,",
        ),
        (
            provider("{backendRef: {nam: x}}"),
            "spec.backendRef.nam",
            "an unknown key",
            "one of the keys group, kind, name, namespace",
        ),
        (provider("{backendRef: {name: Not_A_Name}}"), "spec.backendRef.name", "'Not_A_Name'", ""),
        (provider("{api: 7}"), "spec.api", "7", "a text"),
        (provider("{path: 'a b'}"), "spec.path", "'a b'", "a text"),
        (provider("{path: '/a#b'}"), "spec.path", "'/a#b'", "a text"),
        (
            provider(f"{{models: [{', '.join(['{}'] * 1_025)}]}}"),
            "spec.models",
            "a list of 1,025 elements",
            "at most 1024 elements",
        ),
        (
            provider(f"{{models: [{{name: {'m' * 1_025}}}]}}"),
            "spec.models[0].name",
            f"1,025 characters, '{'m' * 59}...",
            "at most 1024 characters",
        ),
        (provider("{apiKey: SECRET}"), "spec.apiKey", "an unknown key", "one of the keys api,"),
        (provider("{path: '/a\\b'}"), "spec.path", r"'/a\\b'", "a text"),
        (provider("{path: //e.com/x}"), "spec.path", "'//e.com/x'", "without a scheme, a host"),
        (provider("{path: 'https://u:SECRET@e/'}"), "spec.path", "'https://***@e/'", "without a"),
        (provider("{path: 'mailto:x'}"), "spec.path", "'mailto:x'", "without a scheme"),
        (provider("{path: /../../admin}"), "spec.path", "'/../../admin'", "of one or two dots"),
        (provider("{path: ..}"), "spec.path", "'..'", "of one or two dots"),
        (provider("{path: a/./b}"), "spec.path", "'a/./b'", "of one or two dots"),
        (provider("{path: /a/%2e%2E?x=1}"), "spec.path", "'/a/%2e%2E?***'", "of one or two dots"),
        (
            endpoints("{name: a, address: 'user:SECRET@h:80'}"),
            "spec.endpoints[0].address",
            "'***@h:80'",
            "a text",
        ),
        (
            endpoints("{name: a, address: 'h:1', metricsURL: 'http://h/m?token=SECRET'}"),
            "spec.endpoints[0].metricsURL",
            "'http://h/m?***'",
            "a text",
        ),
        (
            worker_set("{metricsURL: 'http://user:SECRET@1.2.3.4/metrics?token=SECRET'}"),
            "spec.metricsURL",
            "'http://***@1.2.3.4/metrics?***'",
            "for example 'http://{address}/metrics'",
        ),
        (
            worker_set("{metricsURL: 'ftp://u:SECRET@h/'}"),
            "spec.metricsURL",
            "'ftp://***@h/'",
            "a text",
        ),
        (
            provider("{models: [{name: a, contextWindow: 0}]}"),
            "spec.models[0].contextWindow",
            "0",
            "from 1 to 2147483647",
        ),
        (
            provider("{models: [{name: a, contextWindow: '32k'}]}"),
            "spec.models[0].contextWindow",
            "'32k'",
            "a whole number",
        ),
        (
            provider("{models: [{name: a, aliases: ['']}]}"),
            "spec.models[0].aliases[0]",
            "''",
            "not empty",
        ),
        (
            provider("{models: [{name: a}, {name: b}, {name: a}]}"),
            "spec.models[2].name",
            "'a'",
            "each model once",
        ),
        (
            worker_set(f"{{{ENDPOINTS}, models: [{{name: a, adapterOf: b}}]}}"),
            "spec.models[0].adapterOf",
            "'b'",
            "the name of a model of this set",
        ),
        (
            worker_set(
                f"{{{ENDPOINTS}, models: [{{name: a}}, {{name: b, adapterOf: a}}, "
                "{name: c, adapterOf: b}]}"
            ),
            "spec.models[2].adapterOf",
            "'b'",
            "that is no adapter itself",
        ),
        (endpoints("{name: a}"), "spec.endpoints[0].address", "nothing", "a text"),
        (endpoints("{address: 'h:1'}"), "spec.endpoints[0].name", "nothing", "a text"),
        (
            endpoints("{name: a, address: 'h:1', weight: 0}"),
            "spec.endpoints[0].weight",
            "0",
            "from 1 to 1000000",
        ),
        (
            endpoints("{name: a, address: 'h:1', role: all}"),
            "spec.endpoints[0].role",
            "'all'",
            "one of both, decode, prefill",
        ),
        (
            endpoints("{name: a, address: 'h:1'}, {name: a, address: 'h:2'}"),
            "spec.endpoints[1].name",
            "'a'",
            "each name once",
        ),
        (
            endpoints("{name: a, address: 'h:1'}, {name: b, address: 'h:1'}"),
            "spec.endpoints[1].address",
            "'h:1'",
            "each address once",
        ),
        (worker_set("{engine: tgi}"), "spec.engine", "'tgi'", "one of sglang, trtllm, vllm"),
        (worker_set("{blockSizeTokens: 0}"), "spec.blockSizeTokens", "0", "from 1 to 65536"),
        (
            worker_set("{priors: {baseTTFTMs: -1}}"),
            "spec.priors.baseTTFTMs",
            "-1",
            "from 0 to 600000",
        ),
        (
            worker_set(f"{{{ENDPOINTS}, endpointsFile: a.endpoints.yaml}}"),
            "spec.endpointsFile",
            "'a.endpoints.yaml'",
            "nothing while there are endpoints",
        ),
        (
            worker_set("{endpointsFile: /etc/passwd}"),
            "spec.endpointsFile",
            "'/etc/passwd'",
            "for example 'llama.endpoints.yaml'",
        ),
        (
            worker_set("{endpointsFile: ../a.endpoints.yaml}"),
            "spec.endpointsFile",
            "'../a.endpoints.yaml'",
            "for example 'llama.endpoints.yaml'",
        ),
        (
            pool("{members: [{kind: Service, name: a}]}"),
            "spec.members[0].kind",
            "'Service'",
            "one of InferenceProvider, InferenceWorkerSet",
        ),
        (
            pool("{members: [&m {kind: InferenceProvider, name: a}, *m]}"),
            "spec.members[1].name",
            "'a'",
            "each member once",
        ),
        (
            pool("{tiers: [{name: t}, {name: t}]}"),
            "spec.tiers[1].name",
            "'t'",
            "each name once",
        ),
        (
            pool(
                "{tiers: [{name: t, members: [&m {kind: InferenceProvider, name: a}]}, "
                "{name: u, members: [*m]}]}"
            ),
            "spec.tiers[1].members[0].name",
            "'a'",
            "each member once",
        ),
        (
            pool("{tiers: [{name: t, rankBy: Profile}]}"),
            "spec.tiers[0].profile",
            "nothing",
            "the name of a profile exactly where rankBy is Profile",
        ),
        (
            pool("{tiers: [{name: t, profile: x}]}"),
            "spec.tiers[0].profile",
            "'x'",
            "the name of a profile exactly where rankBy is Profile",
        ),
        (
            pool("{tiers: [{name: t, rankBy: Random}]}"),
            "spec.tiers[0].rankBy",
            "'Random'",
            "one of EstimatedTTFT, PredictedTTFT, Profile",
        ),
        (
            pool("{tiers: [{name: t, maxSaturationPercent: 0}]}"),
            "spec.tiers[0].maxSaturationPercent",
            "0",
            "from 1 to 10000",
        ),
        (policy("[{action: Block}]"), "spec.rules[0].action", "'Block'", "one of Allow, Deny,"),
        (
            policy("[{tenants: [], action: Deny}]"),
            "spec.rules[0].tenants",
            "an empty list",
            "not empty",
        ),
        (
            policy("[{action: Allow}, {action: Limit}]"),
            "spec.rules[1].limits",
            "nothing",
            "limits exactly where action is Limit",
        ),
        (
            policy("[{action: Deny, limits: {maxOutputTokens: 1}}]"),
            "spec.rules[0].limits",
            "an object",
            "limits exactly where action is Limit",
        ),
        (
            policy("[{action: Deny, reason: 'a;b=c'}]"),
            "spec.rules[0].reason",
            "'a;b=c'",
            "for example 'quota'",
        ),
        (
            policy("[{qosClasses: [URGENT], action: Deny}]"),
            "spec.rules[0].qosClasses[0]",
            "'URGENT'",
            "one of BATCH, DEFERRABLE, INTERACTIVE",
        ),
        (rewrite("[]"), "spec.rules", "an empty list", "not empty"),
        (rewrite("[{targets: []}]"), "spec.rules[0].targets", "an empty list", "not empty"),
        (
            rewrite("[{targets: [{modelRewrite: a}, {modelRewrite: a}]}]"),
            "spec.rules[0].targets[1].modelRewrite",
            "'a'",
            "each model once in a rule",
        ),
        (
            rewrite("[{targets: [{modelRewrite: a, weight: 0}]}]"),
            "spec.rules[0].targets[0].weight",
            "0",
            "from 1 to 1000000",
        ),
        (
            provider().replace(GROUP, OURS),
            "apiVersion",
            "'inferencecache.io/v1alpha1'",
            "kinference.buoyant.io/v1alpha1",
        ),
        (
            worker_set().replace(OURS, "inference.networking.k8s.io/v1"),
            "apiVersion",
            "'inference.networking.k8s.io/v1'",
            "inferencecache.io/v1alpha1 or kinference.buoyant.io/v1alpha1",
        ),
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


@pytest.mark.parametrize("kind", ["InferenceWorkerSet", "InferencePool"])
def test_two_groups_name_one_kind(kind: str) -> None:
    """Documents of both are taken, and so are lists of one kind."""
    text = document(kind, "x", "{}")
    for version in (OURS, GROUP):
        assert names(load({"a.yaml": text.replace(OURS, version)})) == [f"{kind} team-a/x"]
        listed = f"apiVersion: {version}\nkind: {kind}List\nitems:\n- metadata: {{name: y}}\n"
        item = listed + f"  kind: {kind}\n  apiVersion: {version}\n"
        assert names(load({"a.yaml": item})) == [f"{kind} default/y"]


def test_an_object_under_both_groups_is_one_object_twice() -> None:
    """It stands in two places, like any other."""
    text = worker_set()
    state = load({"a.yaml": text, "b.yaml": text.replace(OURS, GROUP)})
    (error,) = state.errors
    assert (error.field, error.value) == ("metadata.name", "a second InferenceWorkerSet default/w")
    assert not state.objects


def test_the_schema_for_clusters_admits_only_openai() -> None:
    """What the loader takes and gives a state, a cluster refuses."""
    kind = KINDS.get("InferenceProvider")
    assert kind is not None
    spec = crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"]["api"]["enum"] == ["OpenAI"]
    assert spec["required"] == ["backendRef", "api", "models"]
    assert spec["properties"]["backendRef"]["required"] == ["name"]
    assert spec["properties"]["models"]["minItems"] == 1
    assert spec["properties"]["models"]["items"]["required"] == ["name"]
    assert json_schema_of(kind)["properties"]["spec"]["properties"]["api"]["enum"] == ["OpenAI"]
    assert "enum" not in json.dumps(crd_of(kind)["spec"]["names"])


def test_names_are_those_that_people_type() -> None:
    """Group, plural, short name and columns of a provider."""
    kind = KINDS.get("InferenceProvider")
    assert kind is not None
    crd = crd_of(kind)
    assert crd["metadata"]["name"] == "inferenceproviders.kinference.buoyant.io"
    assert crd["spec"]["names"]["shortNames"] == ["infprov"]
    columns = crd["spec"]["versions"][0]["additionalPrinterColumns"]
    shown = [(one["name"].upper(), one["jsonPath"]) for one in columns if "priority" not in one]
    assert shown == [
        ("BACKEND", ".spec.backendRef.name"),
        ("API", ".spec.api"),
        ("STATE", ".status.state"),
        ("AGE", ".metadata.creationTimestamp"),
    ]


def test_both_groups_have_a_crd_and_foreign_kinds_have_none() -> None:
    """A cluster keeps ReferenceGrants of the Gateway API, not of ours."""
    found = {path.name for path in CRDS.glob("*.yaml")}
    for plural in ("inferenceworkersets", "inferencepools"):
        assert f"inferencecache.io_{plural}.yaml" in found
        assert f"kinference.buoyant.io_{plural}.yaml" in found
    assert not [name for name in found if "referencegrant" in name or "endpointsfile" in name]


def test_a_rewrite_of_an_absent_pool_says_so() -> None:
    """It waits for the pool."""
    text = document(
        "ModelRewrite", "m", "{poolRef: {name: pool}, rules: [{targets: [{modelRewrite: a}]}]}"
    )
    alone = load(joined(text))
    assert state_of(alone, "ModelRewrite", "m").name == "PoolMissing"
    both = load(joined(text, pool("{}", namespace="team-a")))
    assert state_of(both, "ModelRewrite", "m").name == "Active"
