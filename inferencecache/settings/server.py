"""All settings of one server, by group."""

from dataclasses import dataclass, field

from inferencecache.settings.auth import AuthSettings
from inferencecache.settings.collector import CollectorSettings
from inferencecache.settings.control import ControlSettings
from inferencecache.settings.ending import EndingSettings
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.http import HttpSettings
from inferencecache.settings.index import IndexSettings
from inferencecache.settings.logs import LogSettings
from inferencecache.settings.lookup import LookupSettings
from inferencecache.settings.metrics import MetricsSettings
from inferencecache.settings.picker import PickerParseSettings, PickerSettings
from inferencecache.settings.picker_choice import (
    PickerChoiceSettings,
    PickerSuppressionSettings,
)
from inferencecache.settings.picker_load import PickerLoadSettings
from inferencecache.settings.picker_plugins import PickerPluginSettings
from inferencecache.settings.picker_prefix import PickerIndexSettings, PickerPrefixSettings
from inferencecache.settings.picker_prompt import PickerPromptSettings
from inferencecache.settings.picker_ttft import TtftSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.process import ProcessSettings
from inferencecache.settings.ranking import RankingSettings
from inferencecache.settings.resources import ResourceSettings
from inferencecache.settings.tls import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """What ``inferencecache serve`` can be told; each group belongs to one part of the server."""

    index: IndexSettings = field(default_factory=IndexSettings)
    ranking: RankingSettings = field(default_factory=RankingSettings)
    policy: PolicySettings = field(default_factory=PolicySettings)
    resources: ResourceSettings = field(default_factory=ResourceSettings)
    lookup: LookupSettings = field(default_factory=LookupSettings)
    grpc: GrpcSettings = field(default_factory=GrpcSettings)
    tls: TlsSettings = field(default_factory=TlsSettings)
    picker: PickerSettings = field(default_factory=PickerSettings)
    picker_parse: PickerParseSettings = field(default_factory=PickerParseSettings)
    picker_choice: PickerChoiceSettings = field(default_factory=PickerChoiceSettings)
    picker_load: PickerLoadSettings = field(default_factory=PickerLoadSettings)
    picker_ttft: TtftSettings = field(default_factory=TtftSettings)
    picker_plugins: PickerPluginSettings = field(default_factory=PickerPluginSettings)
    picker_prompt: PickerPromptSettings = field(default_factory=PickerPromptSettings)
    picker_prefix: PickerPrefixSettings = field(default_factory=PickerPrefixSettings)
    picker_index: PickerIndexSettings = field(default_factory=PickerIndexSettings)
    picker_suppression: PickerSuppressionSettings = field(default_factory=PickerSuppressionSettings)
    fleet: FleetSettings = field(default_factory=FleetSettings)
    http: HttpSettings = field(default_factory=HttpSettings)
    control: ControlSettings = field(default_factory=ControlSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    process: ProcessSettings = field(default_factory=ProcessSettings)
    collector: CollectorSettings = field(default_factory=CollectorSettings)
    ending: EndingSettings = field(default_factory=EndingSettings)
    logs: LogSettings = field(default_factory=LogSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
