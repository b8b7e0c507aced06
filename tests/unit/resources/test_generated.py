"""What derives from the kinds is current, and the samples load."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from resource_texts import load

from inferencecache.resources import ResourceKind, StateName, product_kinds
from inferencecache.resources.crd import crd_of, generated_crds, json_schema_of
from inferencecache.resources.member_states import MemberState

ROOT = Path(__file__).parents[3]
CRDS = ROOT / "deploy" / "crds"
SAMPLES = sorted((ROOT / "deploy" / "samples").glob("*.yaml"))
KINDS = list(product_kinds())


@pytest.mark.parametrize("name", sorted(generated_crds(product_kinds())))
def test_generated_files_are_current(name: str) -> None:
    """Run ``inferencecache crds --output deploy/crds`` after changing a kind."""
    assert (CRDS / name).read_text() == generated_crds(product_kinds())[name]


def test_nothing_else_is_checked_in() -> None:
    """A kind that is gone leaves no file behind."""
    found = {path.relative_to(CRDS).as_posix() for path in CRDS.rglob("*") if path.is_file()}
    assert found == set(generated_crds(product_kinds()))


def test_names_are_those_that_people_type() -> None:
    """Short names, scope and columns are as documented."""
    about = {
        kind.kind: (
            crd_of(kind)["spec"]["names"]["shortNames"],
            crd_of(kind)["spec"]["scope"],
            [
                column["name"]
                for column in crd_of(kind)["spec"]["versions"][0]["additionalPrinterColumns"]
            ],
        )
        for kind in KINDS
    }

    assert about["CachePolicy"] == (["cpol"], "Namespaced", ["Eviction", "Age"])
    assert about["CacheTenant"] == (["ct"], "Namespaced", ["Tenant", "Quota", "Age"])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_crds_are_structural(kind: ResourceKind[Any]) -> None:
    """A cluster accepts the schema: every part has a type, and nothing that it forbids."""

    def check(schema: dict[str, Any], path: str) -> None:
        assert isinstance(schema.get("type"), str), path
        assert schema.get("additionalProperties") is not False, path
        assert not {"$ref", "const", "anyOf", "examples"} & schema.keys(), path
        for name, member in schema.get("properties", {}).items():
            check(member, f"{path}.{name}")
        if "items" in schema:
            check(schema["items"], f"{path}[]")

    check(crd_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"], "")


def test_every_rule_stands_in_the_crd() -> None:
    """What is refused in a file is refused by a cluster, too."""
    for kind in KINDS:
        text = yaml.safe_dump(crd_of(kind), width=10_000)
        said = [rule for rule in kind.rules if rule.cel]
        assert text.count("x-kubernetes-validations") == len(said)


def test_json_schemas_forbid_unknown_members() -> None:
    """An editor marks a typo before the server refuses it."""
    for kind in KINDS:
        schema = json_schema_of(kind)
        assert schema["additionalProperties"] is False
        assert schema["properties"]["spec"]["additionalProperties"] is False


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_samples_load(path: Path) -> None:
    """Whoever copies a sample has a file without mistakes."""
    state = load({path.name: path.read_bytes()})

    assert not state.errors
    assert state.objects


def test_samples_can_lie_in_one_directory() -> None:
    """No sample contradicts another one, and what one refers to another one has."""
    state = load({path.name: path.read_bytes() for path in SAMPLES})

    assert not state.errors
    assert len(state.objects) >= len(SAMPLES)
    assert {one.name for one in state.states.values()} == {
        StateName.ACTIVE,
        MemberState.ACCEPTED,
    }


def test_every_kind_has_a_sample() -> None:
    """Nobody has to write the first object of a kind from a schema."""
    state = load({path.name: path.read_bytes() for path in SAMPLES})

    assert {key.kind for key in state.objects} == {kind.kind for kind in KINDS}
