"""Which candidates a model's name leads to, in which pool, and under which name they know it."""

import pytest
from fleets import (
    ChooserRig,
    fleet,
    name_of,
    pool,
    provider,
    question,
    row,
    tier,
    tokens_of,
    worker_set,
)

from inferencecache.picker.choice import Outcome
from inferencecache.picker.choosing import fleet_index
from inferencecache.picker.destination import ProviderDestination
from inferencecache.picker.fleet import EndpointRole, ModelRewrite, RewriteRule, RewriteTarget

LOCAL = worker_set(
    "local",
    row("org/llama", "chat", "tuned"),
    row("tuned", adapter_of="org/llama"),
    addresses=["a:1", "b:1"],
)
VENDOR = provider("vendor", row("vendor/llama", "chat"), row("chat-2"), path="/x?y=1")


def targets(model: str) -> set[tuple[str, str]]:
    """Return the places that serve *model*, with their own name of it."""
    index = fleet_index(fleet(tier("local", LOCAL), tier("vendor", VENDOR)))
    return {
        (candidate.name, candidate.model.name)
        for match in index.everything.matches(model)
        for found in match.rows
        for candidate in found.candidates
    }


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("org/llama", {("a:1", "org/llama"), ("b:1", "org/llama")}),
        ("tuned", {("a:1", "tuned"), ("b:1", "tuned")}),
        (
            "chat",
            {
                ("a:1", "org/llama"),
                ("b:1", "org/llama"),
                ("provider:default/vendor", "vendor/llama"),
            },
        ),
        ("vendor/llama", {("provider:default/vendor", "vendor/llama")}),
        ("chat-2", {("provider:default/vendor", "chat-2")}),
        ("Chat", set()),
        ("", set()),
    ],
)
def test_a_name_leads_to_all_that_answer_to_it(model: str, expected: set[tuple[str, str]]) -> None:
    """A name before an adapter before an alias, and all members of the pool at once."""
    assert targets(model) == expected


def test_a_name_of_its_own_comes_before_an_adapter_and_that_before_an_alias() -> None:
    """Within one member one row answers to a name."""
    members = worker_set(
        "s", row("base", "x"), row("x", adapter_of="base"), row("y", "base"), row("z", "y")
    )
    index = fleet_index(fleet(tier("t", members)))
    found = {
        name: [
            candidate.model.name
            for match in index.everything.matches(name)
            for rows in match.rows
            for candidate in rows.candidates
        ]
        for name in ["base", "x", "y", "z"]
    }
    assert found == {"base": ["base"], "x": ["x"], "y": ["y"], "z": ["z"]}


def test_a_place_stands_once_under_a_name() -> None:
    """Two sets that share a worker do not give it twice the requests."""
    first = worker_set("one", row("m"), addresses=["a:1", "b:1"])
    second = worker_set("two", row("m"), addresses=["b:1", "c:1"])
    rig = ChooserRig(fleet(tier("t", first, second)))
    assert [rig.chosen().name for _ in range(6)] == ["a:1", "b:1", "c:1"] * 2


def test_workers_that_only_read_prompts_are_no_destination() -> None:
    """Whoever gets the request has to answer it."""
    members = worker_set(
        "s",
        row("m"),
        addresses=["p:1", "d:1"],
        roles={"p:1": EndpointRole.PREFILL, "d:1": EndpointRole.DECODE},
    )
    rig = ChooserRig(fleet(tier("t", members)))
    assert [rig.chosen().name for _ in range(3)] == ["d:1"] * 3


def test_the_target_is_what_the_member_calls_it() -> None:
    """H89: whichever of them is chosen, under its own name; the reason names it, too."""
    rig = ChooserRig(fleet(tier("local", LOCAL), tier("vendor", VENDOR)))
    choice = rig.chosen(question("chat"))
    assert choice.target_model == "org/llama"
    assert tokens_of(choice.reason)["target"] == "org/llama"
    outside = rig.chosen(question("vendor/llama"))
    assert outside.target_model == "vendor/llama"
    assert outside.destination == ProviderDestination(
        namespace="default", backend="vendor", path="/x?y=1"
    )


def test_an_unknown_model_is_said_to_be_unknown() -> None:
    """B40: whatever else there is."""
    refusal = ChooserRig(fleet(tier("local", LOCAL))).refused(question("other"))
    assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "model=unknown")


def test_a_pool_has_its_members_only() -> None:
    """B44, B45: an empty namespace is the default one; unknown pools are said to be unknown."""
    small = pool("small", tier("t", VENDOR))
    rig = ChooserRig(fleet(tier("local", LOCAL), tier("vendor", VENDOR), pools=[small]))
    assert rig.chosen(question("chat")).name == "a:1"
    for namespace in ("", "default"):
        asked = question("chat", pool_name="small", namespace=namespace)
        assert rig.chosen(asked).name == "provider:default/vendor"
    for name, namespace in (("small", "other"), ("large", "")):
        refusal = rig.refused(question("chat", pool_name=name, namespace=namespace))
        assert (refusal.outcome, refusal.reason) == (Outcome.NO_WORKERS, "pool=unknown")
    refusal = rig.refused(question("org/llama", pool_name="small"))
    assert refusal.reason == "model=unknown"


def test_another_version_of_the_pool_changes_nothing_but_the_reason() -> None:
    """B46: it is noted, counted, and no error."""
    rig = ChooserRig(fleet(pools=[pool("p", tier("t", LOCAL), version="7")]))
    reasons = {}
    for version in ("", "7", "6", "8"):
        choice = rig.chosen(question("chat", pool_name="p", version=version))
        assert choice.candidate is not None
        assert choice.candidate.member is LOCAL
        reasons[version] = tokens_of(choice.reason).get("pool_version", "")
    assert reasons == {"": "", "7": "", "6": "skew", "8": "skew"}
    assert rig.chooser.skewed_picks == 2


def test_a_default_model_stands_in() -> None:
    """For a model that nobody serves, and for none at all; without one that is BAD_REQUEST."""
    with_default = fleet(tier("t", LOCAL), default_model="chat")
    rig = ChooserRig(with_default)
    for asked in ("unheard-of", ""):
        choice = rig.chosen(question(asked))
        assert choice.target_model == "org/llama"
        assert tokens_of(choice.reason)["model"] == "default"
    assert "model" not in tokens_of(rig.chosen(question("tuned")).reason)
    refusal = ChooserRig(fleet(tier("t", LOCAL))).refused(question(""))
    assert (refusal.outcome, refusal.reason) == (Outcome.BAD_REQUEST, "body=model_missing")


def rewrite(models: set[str] | None, *targets: tuple[str, int], of_pool: str = "") -> ModelRewrite:
    """Return an object with one rule."""
    return ModelRewrite(
        key=name_of("r"),
        pool=name_of(of_pool) if of_pool else None,
        rules=(
            RewriteRule(
                models=None if models is None else frozenset(models),
                targets=tuple(RewriteTarget(model=name, weight=weight) for name, weight in targets),
            ),
        ),
    )


@pytest.mark.parametrize(("draw", "expected"), [(0.0, "a"), (0.74, "a"), (0.75, "b"), (0.999, "b")])
def test_targets_are_drawn_by_weight(draw: float, expected: str) -> None:
    """Three to one, by a number that is drawn."""
    members = worker_set("s", row("a"), row("b"), row("old"))
    rig = ChooserRig(fleet(tier("t", members), rewrites=[rewrite({"old"}, ("a", 3), ("b", 1))]))
    rig.draw = draw
    assert rig.chosen(question("old")).target_model == expected
    assert rig.chosen(question("b")).target_model == "b"


def test_the_closest_rule_counts() -> None:
    """The model's before everybody's, the pool's before all pools', the first of several."""
    models = ["by-name", "by-pool", "any", "any-in-pool", "first"]
    members = worker_set("s", *(row(name) for name in models))
    rewrites = [
        rewrite(None, ("any", 1)),
        rewrite(None, ("any-in-pool", 1), of_pool="p"),
        rewrite({"x"}, ("by-name", 1)),
        rewrite({"x"}, ("first", 1)),
        rewrite({"x"}, ("by-pool", 1), of_pool="p"),
    ]
    part = tier("t", members)
    rig = ChooserRig(fleet(part, pools=[pool("p", part)], rewrites=rewrites))
    assert rig.chosen(question("x")).target_model == "by-name"
    assert rig.chosen(question("x", pool_name="p")).target_model == "by-pool"
    assert rig.chosen(question("y")).target_model == "any"
    assert rig.chosen(question("", pool_name="p")).target_model == "any-in-pool"
    assert rig.chooser.may_lack_model


def test_a_pick_costs_what_its_own_model_has() -> None:
    """A thousand models beside it are not looked at."""
    many = worker_set("many", *(row(f"m{number}") for number in range(1_000)))
    index = fleet_index(fleet(tier("t", many, LOCAL)))
    (match,) = index.everything.matches("chat")
    assert sum(len(found.candidates) for found in match.rows) == 2
