"""The profile handler of configurations whose tiers say which profile they want."""

from collections.abc import Sequence
from typing import Final

from inferencecache.picker.pipeline import Request
from inferencecache.picker.pipeline.parameters import PluginParameters
from inferencecache.picker.pipeline.registry import PluginServices, PluginType


class SingleProfileHandler:
    """Takes the first profile of the configuration."""

    def profile(self, _request: Request, names: Sequence[str]) -> str:
        """Return the first of *names*."""
        return names[0]


def _make(_parameters: PluginParameters, _services: PluginServices) -> SingleProfileHandler:
    return SingleProfileHandler()


SINGLE_PROFILE_HANDLER: Final = PluginType(
    name="single-profile-handler", parameters=PluginParameters, make=_make
)
