"""The weighted profile that a simulation compares with times: its plugins, and their director."""

from random import Random
from typing import Final

from inferencecache.app.simulate_fleet import PROFILE
from inferencecache.clock import Clock
from inferencecache.picker.pipeline import Director, DirectorParts, IgnorePlugins
from inferencecache.picker.pipeline.build import PipelineSources, build_pipeline
from inferencecache.picker.pipeline.registry import PluginRegistry, PluginServices
from inferencecache.picker.plugins import BUILTIN_TYPES
from inferencecache.resources.endpoint_picker_config import read_endpoint_picker_config
from inferencecache.service.picker_plugins import pipeline_config
from inferencecache.settings.picker_choice import PickerChoiceSettings
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.transport.picker_producers import ProducerTasks

PROFILE_CONFIG: Final = f"""\
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: prefix-cache-scorer
  - type: active-request-scorer
  - type: token-load-scorer
    parameters: {{queueThresholdTokens: 65536}}
  - type: no-hit-lru-scorer
  - type: max-score-picker
schedulingProfiles:
  - name: {PROFILE}
    plugins:
      - pluginRef: prefix-cache-scorer
        weight: 3
      - pluginRef: active-request-scorer
        weight: 2
      - pluginRef: token-load-scorer
        weight: 2
      - pluginRef: no-hit-lru-scorer
        weight: 1
      - pluginRef: max-score-picker
"""
"""As somebody would write it into a file."""


def profile_director(clock: Clock, seed: int) -> Director:
    """Return what takes Picks through the plugins of the profile.

    Args:
        clock: Virtual time.
        seed: Of what breaks ties.
    """
    settings = PickerPluginSettings()
    config = read_endpoint_picker_config(
        PROFILE_CONFIG.encode(), "weighted profile", ResourceSettings()
    )
    sources = PipelineSources(
        registry=PluginRegistry(BUILTIN_TYPES, {}),
        services=PluginServices(clock=clock, draw=Random(seed).random),  # noqa: S311 - breaks ties
        settings=settings,
    )
    return Director(
        DirectorParts(
            pipeline=build_pipeline(pipeline_config(config), sources),
            runner=ProducerTasks(clock, settings.producers_max),
            observer=IgnorePlugins(),
            attributes_max=settings.attributes_max,
            bytes_per_token=PickerChoiceSettings().bytes_per_token,
        )
    )
