"""A later kind adds models and a description; the rest follows."""

from collections.abc import Iterator, Sequence
from typing import Annotated

import pytest
from msgspec import Meta
from resource_texts import load, names

from inferencecache.resources import (
    KindRegistry,
    LoadState,
    ObjectKey,
    ObjectState,
    ResourceKind,
    ResourceModel,
    ResourceObject,
    ResourceScope,
    product_kinds,
)
from inferencecache.resources.crd import crd_of, json_schema_of
from inferencecache.resources.schema import schema_of
from inferencecache.resources.status import DirectoryStatus, objects_by_kind, status_of


class ProviderSpec(ResourceModel, frozen=True, kw_only=True):
    """Names where models are served."""

    url: str | None = None
    models: Annotated[list[str], Meta(min_length=1, max_length=2)] | None = None


class ProviderStatus(ResourceModel, frozen=True, kw_only=True):
    """Nothing yet."""


def incomplete(
    objects: Sequence[ResourceObject[ProviderSpec]], _load: LoadState
) -> Iterator[tuple[ObjectKey, ObjectState]]:
    """Name providers that lack something."""
    for found in objects:
        if found.spec.url is None:
            yield found.key, ObjectState("Incomplete", "NoUrl", "there is no url")


PROVIDER = ResourceKind(
    kind="Provider",
    plural="providers",
    short_names=("prov",),
    description="A provider.",
    spec=ProviderSpec,
    status=ProviderStatus,
    scope=ResourceScope.CLUSTER,
    assess=incomplete,
)
KINDS = KindRegistry([PROVIDER])


def provider(members: str = "", metadata: str = "{name: p}") -> str:
    """Return one document."""
    return (
        f"apiVersion: inferencecache.io/v1alpha1\nkind: Provider\nmetadata: {metadata}\n{members}"
    )


def test_a_state_is_no_error() -> None:
    """An accepted object that lacks something is in force, in a state of its kind."""
    state = load({"a.yaml": provider()}, kinds=KINDS)

    assert not state.errors
    assert names(state) == ["Provider p"]
    assert objects_by_kind(state) == {"Provider": {"Incomplete": 1}}
    (shown,) = status_of(state, DirectoryStatus(), 10).objects
    assert (shown.state, shown.reason, shown.is_held) == ("Incomplete", "NoUrl", False)


def test_an_object_of_the_whole_cluster_has_no_namespace() -> None:
    """Giving one is a mistake that says so."""
    (error,) = load({"a.yaml": provider(metadata="{name: p, namespace: x}")}, kinds=KINDS).errors

    assert error.field == "metadata.namespace"
    assert error.object == "Provider p"
    assert "namespace" not in json_schema_of(PROVIDER)["properties"]["metadata"]["properties"]


def test_elements_of_lists_are_checked() -> None:
    """The path names the element."""
    (error,) = load({"a.yaml": provider("spec: {models: [a, 1]}")}, kinds=KINDS).errors

    assert (error.field, error.allowed) == ("spec.models[1]", "a text")
    members = crd_of(PROVIDER)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert members["spec"]["properties"]["models"] == {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "maxItems": 2,
    }


@pytest.mark.parametrize(
    ("models", "found"), [("[]", "an empty list"), ("[a, b, c]", "a list of 3 elements")]
)
def test_lists_have_lengths(models: str, found: str) -> None:
    """Too short and too long are told alike, and how long they are."""
    (error,) = load({"a.yaml": provider(f"spec: {{models: {models}}}")}, kinds=KINDS).errors

    assert (error.field, error.value) == ("spec.models", found)
    assert error.allowed == "a list, not empty, at most 2 elements"


def test_a_type_without_a_schema_is_refused() -> None:
    """Whoever adds such a member learns it from the first test."""

    class Odd(ResourceModel, frozen=True, kw_only=True):
        """Holds bytes."""

        data: bytes

    with pytest.raises(TypeError, match="cannot hold"):
        schema_of(Odd)


def test_names_are_taken_once() -> None:
    """Two kinds of one name could not be told apart."""
    kinds = product_kinds()

    with pytest.raises(ValueError, match="registered already"):
        kinds.register(next(iter(kinds)))


def test_the_status_lists_only_so_much() -> None:
    """A page stays readable; totals say what it leaves out."""
    texts = {f"{n}.yaml": provider(metadata=f"{{name: p{n}}}") for n in range(5)}

    status = status_of(load({**texts, "z.yaml": "["}, kinds=KINDS), DirectoryStatus(), 2)

    assert (status.objects_total, len(status.objects)) == (5, 2)
    assert (status.files_total, len(status.files)) == (6, 2)
    assert (status.errors_total, status.errors[0].file) == (1, "z.yaml")
