"""Keep the endpoints whose labels a selector matches."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from inferencecache.picker.pipeline import EndpointView, Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType

_RULES_MAX: Final = 64


class MatchExpression(PluginParameters, frozen=True):
    """One condition of a selector.

    Attributes:
        key: The label.
        operator: How it is compared.
        values: With what; none for the last two operators.
    """

    key: Annotated[str, Meta(min_length=1)]
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: Annotated[tuple[str, ...], Meta(max_length=_RULES_MAX)] = ()


class LabelSelectorParameters(PluginParameters, frozen=True):
    """Parameters; all conditions must hold, none keeps everything.

    Attributes:
        match_labels: Labels and the value that each must have.
        match_expressions: Other conditions.
    """

    match_labels: Annotated[dict[str, str], Meta(max_length=_RULES_MAX)] = field(
        default_factory=dict
    )
    match_expressions: Annotated[tuple[MatchExpression, ...], Meta(max_length=_RULES_MAX)] = ()


class LabelSelectorFilter:
    """Keeps what the selector matches; a provider has no labels.

    Args:
        parameters: See there.

    Raises:
        ValueError: An operator has values that it must not have, or lacks them.
    """

    def __init__(self, parameters: LabelSelectorParameters) -> None:
        self._labels = parameters.match_labels
        self._expressions = parameters.match_expressions
        for expression in self._expressions:
            if (expression.operator in {"In", "NotIn"}) != bool(expression.values):
                raise ValueError("values with In and NotIn, and none with the other operators")

    def filter(
        self, _request: Request, endpoints: Sequence[EndpointView]
    ) -> Sequence[EndpointView]:
        """Return those of *endpoints* that match."""
        return [endpoint for endpoint in endpoints if self._matches(endpoint.labels)]

    def _matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self._labels.items()) and all(
            _holds(expression, labels.get(expression.key)) for expression in self._expressions
        )


def _holds(expression: MatchExpression, value: str | None) -> bool:
    if expression.operator == "In":
        return value in expression.values
    if expression.operator == "NotIn":
        return value not in expression.values
    return (value is not None) == (expression.operator == "Exists")


def _make(parameters: LabelSelectorParameters, _services: PluginServices) -> LabelSelectorFilter:
    return LabelSelectorFilter(parameters)


LABEL_SELECTOR_FILTER: Final = PluginType(
    name="label-selector-filter", parameters=LabelSelectorParameters, make=_make
)
