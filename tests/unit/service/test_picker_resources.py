"""What the picker is given of worker sets, providers, pools and rules."""

import pytest
from picker_texts import (
    BACKEND,
    ENDPOINTS,
    MODELS,
    PROVIDER,
    fleet_of,
    joined,
    pool,
    pool_of,
    provider,
    result_of,
    worker_set,
)
from resource_texts import document, load

from inferencecache.clock import NS_PER_MS
from inferencecache.picker.fleet import (
    ContextOverflow,
    Endpoint,
    EndpointRole,
    EngineKind,
    Fleet,
    ModelRewrite,
    ModelRow,
    ObjectName,
    PickerPolicy,
    PolicyRule,
    Pool,
    PriorsForEngine,
    Provider,
    RankBy,
    RequestLimits,
    RewriteRule,
    RewriteTarget,
    RuleAction,
    WorkerSet,
)
from inferencecache.picker.qos import QosClass
from inferencecache.service.picker_resources import fleet_slices
from inferencecache.settings.fleet import FleetSettings


def names(found: Pool) -> dict[str, list[str]]:
    """Return the members of each tier."""
    return {tier.name: [str(member.key) for member in tier.members] for tier in found.tiers}


def only_provider(fleet: Fleet) -> Provider:
    """Return the one provider that can be picked."""
    (tier,) = fleet.everything.tiers
    (member,) = tier.members
    assert isinstance(member, Provider)
    return member


def only_set(fleet: Fleet) -> WorkerSet:
    """Return the one worker set that can be picked."""
    (tier,) = fleet.everything.tiers
    (member,) = tier.members
    assert isinstance(member, WorkerSet)
    return member


def named(name: str, namespace: str = "default") -> ObjectName:
    """Return the name of an object."""
    return ObjectName(namespace=namespace, name=name)


def test_a_provider() -> None:
    """Its backend stands in its own namespace; rows without a name do not count."""
    rows = "models: [{name: a, aliases: [x, y, x], contextWindow: 10}, {aliases: [z]}, {name: b}]"
    spec = f"{{{BACKEND}, api: OpenAI, {rows}, path: '/v?k=1'}}"
    found = only_provider(fleet_of(provider(spec, namespace="team-a")))
    assert found.key == named("p", "team-a")
    assert found.backend == named("databricks", "team-a")
    assert found.path == "/v?k=1"
    assert found.models == (
        ModelRow(name="a", aliases=("x", "y"), context_window=10),
        ModelRow(name="b"),
    )


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("''", ""),
        ("~", ""),
        ("/a/b", "/a/b"),
        ("a/b", "/a/b"),
        ("'?k=1'", "/?k=1"),
        ("a..b/..c/...?x=../..", "/a..b/..c/...?x=../.."),
        ("/models/m:generate", "/models/m:generate"),
        ("m/x:y", "/m/x:y"),
    ],
)
def test_a_path_always_starts_with_a_slash(path: str, sent: str) -> None:
    """Unless it is empty, which leaves the client's."""
    spec = f"{{{BACKEND}, api: OpenAI, {MODELS}, path: {path}}}"
    assert only_provider(fleet_of(provider(spec))).path == sent


def test_a_worker_set() -> None:
    """Every field arrives."""
    text = """{
      engine: sglang, blockSizeTokens: 32, hashScheme: h, indexTenant: t, tokenizer: /t,
      chatTemplate: /c, metricsURL: 'http://{address}/metrics/{host}',
      models: [{name: base}, {name: lora, adapterOf: base}],
      priors: {prefillTokensPerSecond: 5, baseTTFTMs: 0, maxConcurrency: 7},
      endpoints: [
        {name: a, address: '[::1]:80', labels: {z: '1', b: '2'}, weight: 3, role: prefill},
        {name: b, address: 'h:80', metricsURL: 'http://m/'}]}"""
    found = only_set(fleet_of(worker_set(text)))
    assert (found.engine, found.block_size_tokens, found.hash_scheme) == (
        EngineKind.SGLANG,
        32,
        "h",
    )
    assert (found.index_tenant, found.tokenizer, found.chat_template) == ("t", "/t", "/c")
    assert found.models == (ModelRow(name="base"), ModelRow(name="lora", adapter_of="base"))
    assert found.priors == PriorsForEngine(
        prefill_tokens_per_s=5.0, base_ttft_ms=0.0, concurrency_max=7
    )
    assert found.endpoints == (
        Endpoint(
            name="a",
            address="[::1]:80",
            labels=(("b", "2"), ("z", "1")),
            weight=3.0,
            role=EndpointRole.PREFILL,
            metrics_url="http://[::1]:80/metrics/[::1]",
        ),
        Endpoint(name="b", address="h:80", metrics_url="http://m/"),
    )


@pytest.mark.parametrize(
    ("base", "adapter", "window"),
    [
        ("contextWindow: 100", "", 100),
        ("contextWindow: 100", "contextWindow: 50", 50),
        ("contextWindow: 100", "contextWindow: 200", 200),
        ("", "contextWindow: 50", 50),
        ("", "", None),
    ],
)
def test_an_adapter_has_the_window_of_its_base(base: str, adapter: str, window: int | None) -> None:
    """Unless it says another; the order of the rows does not matter."""
    rows = [f"{{name: l, adapterOf: m, {adapter}}}", f"{{name: m, {base}}}"]
    for models in (rows, rows[::-1]):
        text = f"{{{ENDPOINTS}, models: [{', '.join(models)}]}}"
        found = only_set(fleet_of(worker_set(text)))
        assert {row.name: row.context_window for row in found.models}["l"] == window


def test_what_a_worker_set_leaves_out_the_settings_say() -> None:
    """Engine, priors and the rest have defaults."""
    settings = FleetSettings(
        prefill_tokens_per_s=3, base_ttft_ns=1_500_000, concurrency_max=4, saturation_percent_max=50
    )
    fleet = fleet_of(worker_set(), settings=settings)
    found = only_set(fleet)
    assert found.engine is EngineKind.VLLM
    assert (found.block_size_tokens, found.hash_scheme, found.index_tenant) == (None, "", "")
    assert found.priors == PriorsForEngine(
        prefill_tokens_per_s=3.0, base_ttft_ms=1_500_000 / NS_PER_MS, concurrency_max=4
    )
    assert fleet.everything.tiers[0].saturation_max == 0.5


def test_the_published_defaults() -> None:
    """As the reference page has them."""
    assert only_set(fleet_of(worker_set())).priors == PriorsForEngine(
        prefill_tokens_per_s=8_000.0, base_ttft_ms=50.0, concurrency_max=256
    )


def test_endpoints_from_a_file() -> None:
    """They are the set's like its own."""
    state = load(
        {
            "w.yaml": worker_set(
                f"{{{MODELS}, endpointsFile: a.endpoints.yaml, metricsURL: 'http://{{address}}/m'}}"
            ),
            "a.endpoints.yaml": "- {name: a, address: 'h:1', role: decode}\n",
        }
    )
    found = only_set(result_of(fleet_slices(state, FleetSettings())))
    assert found.endpoints == (
        Endpoint(name="a", address="h:1", role=EndpointRole.DECODE, metrics_url="http://h:1/m"),
    )


def test_without_a_pool_everything_accepted_is_seen() -> None:
    """Worker sets first, then providers, whatever pools and namespaces they are in."""
    fleet = fleet_of(
        provider(),
        provider("{}", name="incomplete"),
        provider(PROVIDER, name="other", namespace="team-a"),
        worker_set(),
        worker_set("{}", name="empty"),
        pool_of("InferenceProvider/p"),
    )
    assert names(fleet.everything) == {
        "worker-sets": ["default/w"],
        "providers": ["default/p", "team-a/other"],
    }
    assert all(tier.rank_by is RankBy.ESTIMATED_TTFT for tier in fleet.everything.tiers)
    assert fleet.everything.context_overflow is ContextOverflow.LARGEST
    assert fleet.everything.default_model == ""


def test_a_pool_without_tiers_has_two() -> None:
    """Absent members are left out, and so are empty tiers."""
    fleet = fleet_of(
        provider(),
        worker_set(),
        pool_of("InferenceProvider/p", "InferenceWorkerSet/w", "InferenceWorkerSet/absent"),
        pool_of("InferenceProvider/p", name="remote"),
        pool_of("InferenceProvider/absent", name="nobody"),
    )
    assert names(fleet.pools[named("pool")]) == {
        "worker-sets": ["default/w"],
        "providers": ["default/p"],
    }
    assert names(fleet.pools[named("remote")]) == {"providers": ["default/p"]}
    assert names(fleet.pools[named("nobody")]) == {}


def test_a_pool_with_tiers() -> None:
    """They come in their order, and whoever no tier names comes last."""
    spec = """{
      defaultModel: m, contextOverflow: Reject, spillToProviders: true,
      members: [{kind: InferenceWorkerSet, name: w}, {kind: InferenceProvider, name: p}],
      tiers: [
        {name: first, rankBy: Profile, profile: x, maxSaturationPercent: 80, explore: true,
         members: [{kind: InferenceProvider, name: q, namespace: team-a}]},
        {name: second, rankBy: PredictedTTFT, members: [{kind: InferenceWorkerSet, name: w}]},
        {name: third}]}"""
    text = pool(spec).replace("name: pool,", "name: pool, resourceVersion: '7',")
    fleet = fleet_of(
        provider(), provider(PROVIDER, name="q", namespace="team-a"), worker_set(), text
    )
    found = fleet.pools[named("pool")]
    assert names(found) == {
        "first": ["team-a/q"],
        "second": ["default/w"],
        "third": [],
        "rest.providers": ["default/p"],
    }
    first, second, third, _rest = found.tiers
    assert (first.rank_by, first.profile, first.saturation_max, first.explores) == (
        RankBy.PROFILE,
        "x",
        0.8,
        True,
    )
    assert (second.rank_by, second.profile, second.explores) == (RankBy.PREDICTED_TTFT, "", False)
    assert third.rank_by is RankBy.ESTIMATED_TTFT
    assert (found.default_model, found.context_overflow) == ("m", ContextOverflow.REJECT)
    assert found.spills_to_providers
    assert found.resource_version == "7"


def test_policies() -> None:
    """What a rule leaves out matches everything; the empty tenant is a tenant."""
    spec = """{defaultAction: Deny, rules: [
      {tenants: ["", a], models: [m], qosClasses: [BATCH], action: Deny, reason: blocked},
      {action: Limit, limits: {maxRequestsInFlight: 1, maxRequestsPerMinute: 2,
                               maxOutputTokens: 3}}]}"""
    (found,) = fleet_of(document("PickerPolicy", "p", spec, namespace="default")).policies
    assert found == PickerPolicy(
        key=named("p"),
        rules=(
            PolicyRule(
                tenants=frozenset({"", "a"}),
                models=frozenset({"m"}),
                qos_classes=frozenset({QosClass.BATCH}),
                action=RuleAction.DENY,
                reason="blocked",
            ),
            PolicyRule(
                action=RuleAction.LIMIT,
                limits=RequestLimits(
                    in_flight_max=1, requests_per_minute_max=2, output_tokens_max=3
                ),
            ),
        ),
        default_action=RuleAction.DENY,
        generation=found.generation,
    )


def test_a_policy_allows_what_it_says_nothing_of() -> None:
    """An empty one changes nothing."""
    (found,) = fleet_of(document("PickerPolicy", "p", "{}")).policies
    assert (found.rules, found.default_action) == ((), RuleAction.ALLOW)


def test_rewrites() -> None:
    """One match is enough; a rule without any matches every request."""
    spec = """{poolRef: {name: pool}, rules: [
      {matches: [{model: {value: a}}, {model: {type: Exact, value: b}}],
       targets: [{modelRewrite: c, weight: 9}, {modelRewrite: d}]},
      {targets: [{modelRewrite: e}]}]}"""
    (found,) = fleet_of(document("ModelRewrite", "m", spec)).rewrites
    assert found == ModelRewrite(
        key=named("m", "team-a"),
        pool=named("pool", "team-a"),
        rules=(
            RewriteRule(
                models=frozenset({"a", "b"}),
                targets=(RewriteTarget(model="c", weight=9), RewriteTarget(model="d", weight=1)),
            ),
            RewriteRule(models=None, targets=(RewriteTarget(model="e", weight=1),)),
        ),
        generation=found.generation,
    )


def test_rules_are_in_order() -> None:
    """By namespace and name."""
    fleet = fleet_of(
        document("PickerPolicy", "b", "{}", namespace="y"),
        document("PickerPolicy", "c", "{}", namespace="x"),
        document("PickerPolicy", "a", "{}", namespace="y"),
    )
    assert [str(policy.key) for policy in fleet.policies] == ["x/c", "y/a", "y/b"]


def test_a_generation_changes_with_the_spec_and_only_then() -> None:
    """Whoever remembers failures forgets them with a changed object."""
    before = only_provider(fleet_of(provider())).generation
    labelled = provider().replace("name: p,", "name: p, labels: {a: b},")
    assert only_provider(fleet_of(labelled)).generation == before
    assert only_provider(fleet_of(provider(PROVIDER.replace("[qwen]", "[q]")))).generation != before


def test_many_objects_are_taken_in_slices() -> None:
    """Ten thousand objects hold nobody up."""
    texts = [provider(name=f"p{number}") for number in range(1_000)]
    state = load(joined(*texts))
    pauses = sum(1 for _ in fleet_slices(state, FleetSettings()))
    assert pauses >= 10


def test_plugins_rank_engines_that_nobody_says_how_to_rank() -> None:
    """Never providers, which have neither labels nor a load that filters could know."""
    spec = """{
      members: [{kind: InferenceWorkerSet, name: w}, {kind: InferenceProvider, name: p}],
      tiers: [
        {name: said, rankBy: EstimatedTTFT, members: [{kind: InferenceWorkerSet, name: x}]},
        {name: unsaid, members: [{kind: InferenceWorkerSet, name: y}]},
        {name: mixed, members: [{kind: InferenceWorkerSet, name: z},
                                {kind: InferenceProvider, name: q}]}]}"""
    sets = [worker_set(name=name) for name in "wxyz"]
    fleet = fleet_of(*sets, provider(), provider(PROVIDER, name="q"), pool(spec))
    found = fleet.pools[named("pool")]
    assert {tier.name: tier.is_rank_default for tier in found.tiers} == {
        "said": False,
        "unsaid": True,
        "mixed": False,
        "rest.worker-sets": True,
        "rest.providers": False,
    }
    assert [tier.is_rank_default for tier in fleet.everything.tiers] == [True, False]
