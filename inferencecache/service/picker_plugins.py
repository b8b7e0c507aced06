"""From EndpointPickerConfig to what the pipeline is built from."""

from inferencecache.picker.pipeline.config import (
    PipelineConfig,
    PluginEntry,
    ProfileEntry,
    ProfileStep,
)
from inferencecache.resources.endpoint_picker_config import EndpointPickerConfig


def pipeline_config(config: EndpointPickerConfig) -> PipelineConfig:
    """Return the plugins and profiles of *config*."""
    return PipelineConfig(
        plugins=tuple(
            PluginEntry(
                type=plugin.type,
                name=plugin.name or "",
                parameters={
                    name: value
                    for name, value in (plugin.parameters or {}).items()
                    if value is not None
                },
            )
            for plugin in config.plugins
        ),
        profiles=tuple(
            ProfileEntry(
                name=profile.name,
                steps=tuple(
                    ProfileStep(plugin=step.plugin_ref, weight=step.weight)
                    for step in profile.plugins
                ),
            )
            for profile in config.scheduling_profiles
        ),
    )
