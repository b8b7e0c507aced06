"""The filter by labels."""

import pytest
from pipeline_rig import made, provider, request, worker

from inferencecache.errors import ConfigError
from inferencecache.picker.pipeline.parameters import read_parameters
from inferencecache.picker.plugins.label_selector_filter import LabelSelectorParameters

VIEWS = [
    worker("a", labels={"zone": "x", "gpu": "h100"}),
    worker("b", labels={"zone": "y"}),
    provider(),
]


def kept(**parameters: object) -> list[str]:
    """Return the names of those that stay."""
    return [
        view.name for view in made("label-selector-filter", **parameters).filter(request(), VIEWS)
    ]


@pytest.mark.parametrize(
    ("operator", "values", "names"),
    [
        ("In", ["x", "z"], ["a"]),
        ("NotIn", ["x"], ["b", "provider:default/outside"]),
        ("Exists", [], ["a", "b"]),
        ("DoesNotExist", [], ["provider:default/outside"]),
    ],
)
def test_expressions_compare_a_label(operator: str, values: list[str], names: list[str]) -> None:
    """A provider has no labels, which is not in any set."""
    expression = {"key": "zone", "operator": operator, "values": values}
    assert kept(matchExpressions=[expression]) == names


def test_all_conditions_must_hold() -> None:
    """Labels and expressions together."""
    exists = {"key": "gpu", "operator": "Exists"}
    assert kept(matchLabels={"zone": "x"}, matchExpressions=[exists]) == ["a"]
    assert kept(matchLabels={"zone": "y"}, matchExpressions=[exists]) == []
    assert len(kept()) == 3


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "zone", "operator": "In"},
        {"key": "zone", "operator": "Exists", "values": ["x"]},
    ],
)
def test_values_must_go_with_the_operator(expression: dict[str, object]) -> None:
    """A condition that can never hold is a slip."""
    with pytest.raises(ValueError, match="values with In and NotIn"):
        kept(matchExpressions=[expression])


def test_an_unknown_operator_is_told_with_those_there_are() -> None:
    """Nobody has to look them up."""
    expression = {"key": "zone", "operator": "Foo"}
    given = {"matchExpressions": [expression]}
    with pytest.raises(ConfigError) as caught:
        read_parameters(given, LabelSelectorParameters, "plugins[0].parameters")
    assert caught.value.field == "plugins[0].parameters.matchExpressions[0].operator"
    assert caught.value.value == "Foo"
    assert caught.value.allowed == "one of DoesNotExist, Exists, In, NotIn"
