"""Let switches be given without a value: ``--insecure-disable-auth`` means ``=true``.

Every setting is an option with a value; only for those that are true or false may it be left out.
"""

from collections.abc import Sequence
from typing import Final

from inferencecache.settings.demo import DemoSettings
from inferencecache.settings.doctor import DoctorOutputSettings
from inferencecache.settings.fake_engine import FakeEngineSettings, FakeTrafficSettings
from inferencecache.settings.knob import KnobKind, knobs_of
from inferencecache.settings.loader import groups_of
from inferencecache.settings.replay import ReplaySettings
from inferencecache.settings.server import ServerSettings
from inferencecache.settings.subscribe import SubscribeSettings

_GROUPED: Final = (ServerSettings, SubscribeSettings)
_SWITCHES: Final = frozenset(
    f"--{knob.flag}"
    for group in (
        *(group for command in _GROUPED for _, group in groups_of(command)),
        *(DemoSettings, ReplaySettings, DoctorOutputSettings),
        *(FakeEngineSettings, FakeTrafficSettings),
    )
    for knob in knobs_of(group)
    if knob.kind is KnobKind.BOOLEAN
)
_VALUES: Final = frozenset({"true", "false"})


def with_values(arguments: Sequence[str]) -> list[str]:
    """Return *arguments* with a value for each switch that stands alone.

    >>> with_values(["serve", "--insecure-disable-auth", "--ttl", "5m"])
    ['serve', '--insecure-disable-auth=true', '--ttl', '5m']
    """
    following = [*arguments, ""][1:]
    return [
        f"{argument}=true" if argument in _SWITCHES and after not in _VALUES else argument
        for argument, after in zip(arguments, following, strict=True)
    ]
