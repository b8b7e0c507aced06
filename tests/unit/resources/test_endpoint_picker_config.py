"""EndpointPickerConfig: strict, and clear about what is wrong."""

import pytest
from resource_texts import tenant

from inferencecache.errors import ConfigError
from inferencecache.resources import LoadState, ResourceLoader, SourceFile, product_kinds
from inferencecache.resources.endpoint_picker_config import (
    EndpointPickerConfig,
    read_endpoint_picker_config,
)
from inferencecache.settings.resources import ResourceSettings

HEAD = "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\n"

PASTED = """
apiVersion: inference.networking.x-k8s.io/v1alpha1
kind: EndpointPickerConfig
featureGates: [flowControl]
plugins:
- type: queue-scorer
- name: by-zone
  type: label-selector-filter
  parameters:
    matchLabels: {zone: a}
schedulingProfiles:
- name: default
  plugins:
  - pluginRef: by-zone
  - pluginRef: queue-scorer
    weight: 2
flowControl:
  maxBytes: 1G
  priorityBands: [{priority: 1}]
dataLayer: {}
requestHandler:
  parsers: []
saturationDetector: {pluginRef: x}
"""


def read(text: str) -> EndpointPickerConfig:
    """Read *text* as a file."""
    return read_endpoint_picker_config(text.encode(), "plugins.yaml", ResourceSettings())


def test_a_pasted_configuration_is_read() -> None:
    """Under the older group as well; sections without effect are named if they say anything."""
    config = read(PASTED)
    assert [(plugin.type, plugin.name) for plugin in config.plugins] == [
        ("queue-scorer", None),
        ("label-selector-filter", "by-zone"),
    ]
    assert config.plugins[1].parameters == {"matchLabels": {"zone": "a"}}
    (profile,) = config.scheduling_profiles
    assert [(step.plugin_ref, step.weight) for step in profile.plugins] == [
        ("by-zone", None),
        ("queue-scorer", 2.0),
    ]
    assert config.unsupported == [
        "featureGates",
        "flowControl",
        "requestHandler",
        "saturationDetector",
    ]


def test_null_counts_as_absent() -> None:
    """As everywhere in resources."""
    config = read(f"{HEAD}plugins: null\nschedulingProfiles:\nflowControl: ~\n")
    assert (config.plugins, config.scheduling_profiles, config.unsupported) == ([], [], [])


def test_json_is_yaml() -> None:
    """Whoever generates it may write that."""
    text = '{"apiVersion": "llm-d.ai/v1alpha1", "kind": "EndpointPickerConfig", "plugins": []}'
    assert read(text).plugins == []


@pytest.mark.parametrize(
    ("text", "field", "value", "allowed"),
    [
        (f"{HEAD}plugin: []", "plugin", "an unknown key", "one of the keys apiVersion, dataLayer"),
        (
            f"{HEAD}plugins: [{{type: a, weight: 1}}]",
            "plugins[0].weight",
            "an unknown key",
            "name, parameters",
        ),
        (f"{HEAD}plugins: [{{name: a}}]", "plugins[0].type", "nothing", "a text"),
        (f"{HEAD}plugins: [{{type: ''}}]", "plugins[0].type", "", "not empty"),
        (f"{HEAD}plugins: [{{type: 1}}]", "plugins[0].type", "1", "a text"),
        (f"{HEAD}plugins: [{{type: a, parameters: []}}]", "plugins[0].parameters", "a list", "obj"),
        (
            f"{HEAD}schedulingProfiles: [{{name: p, plugins: [{{pluginRef: a, weight: x}}]}}]",
            "schedulingProfiles[0].plugins[0].weight",
            "x",
            "a number",
        ),
        (
            f"{HEAD}schedulingProfiles: [{{name: p, plugins: [{{pluginRef: a, weight: yes}}]}}]",
            "schedulingProfiles[0].plugins[0].weight",
            "true",
            "a number",
        ),
        ("apiVersion: v1\nkind: EndpointPickerConfig", "apiVersion", "v1", "llm-d.ai/v1alpha1 or"),
        ("apiVersion: llm-d.ai/v1alpha1", "kind", "null", "EndpointPickerConfig"),
        ("[1]", "EndpointPickerConfig", "a list", "a EndpointPickerConfig"),
        (f"{HEAD}---\n{HEAD}", "EndpointPickerConfig", "2 documents", "one EndpointPickerConfig"),
        (f"{HEAD}plugins: []\nplugins: []", "plugins", "plugins", "each key once"),
        (f"{HEAD}plugins: [", "EndpointPickerConfig", "did not find", "YAML"),
    ],
)
def test_what_is_wrong_is_named(text: str, field: str, value: str, allowed: str) -> None:
    """Field, value, what would be right, and the file."""
    with pytest.raises(ConfigError) as caught:
        read(text)
    error = caught.value
    assert error.field == field
    assert str(error.value).startswith(value)
    assert allowed in error.allowed
    assert error.source.startswith("plugins.yaml")


def test_deep_parameters_end_in_an_error_at_the_limit() -> None:
    """Not in an exhausted interpreter."""
    deep = "[" * 200 + "]" * 200
    with pytest.raises(ConfigError, match="levels"):
        read(f"{HEAD}plugins: [{{type: a, parameters: {{x: {deep}}}}}]")


def test_the_loader_of_objects_passes_it_over() -> None:
    """It is no object, and no mistake; what stands beside it counts."""
    text = f"{HEAD}plugins: []\n---\n{tenant()}"
    state = ResourceLoader(product_kinds(), ResourceSettings()).load(
        [SourceFile(name="a.yaml", content=text.encode())], LoadState()
    )
    assert state.errors == ()
    assert [found.kind for found in state.objects] == ["CacheTenant"]
