"""EndpointPickerConfig: the plugins and profiles of the picker, as llm-d writes them.

It is no object like others: it has no metadata and no spec, and there is one per server. It stands
in a file of its own, or among the resource files, whose loader passes it over.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta, field

from inferencecache.errors import ConfigError
from inferencecache.resources.documents import Document, UnreadableFileError, parse_documents
from inferencecache.resources.explain import flaws_of
from inferencecache.resources.flaw import Flaw, shown
from inferencecache.resources.model import SourceFile
from inferencecache.resources.models import ResourceModel
from inferencecache.resources.schema import schema_of
from inferencecache.settings.resources import ResourceSettings

KIND: Final = "EndpointPickerConfig"
API_VERSIONS: Final = ("llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1")

_NAME_MAX: Final = 128
_LIST_MAX: Final = 1_024

Name = Annotated[str, Meta(min_length=1, max_length=_NAME_MAX)]


class PluginSpec(ResourceModel, frozen=True, kw_only=True):
    """One plugin."""

    type: Annotated[Name, Meta(description="Its registered type.")]
    name: Annotated[Name, Meta(description="Its name; its type if absent.")] | None = None
    parameters: Annotated[dict[str, Any], Meta(description="What its type takes.")] | None = None


class ProfilePluginSpec(ResourceModel, frozen=True, kw_only=True):
    """A plugin of a profile."""

    plugin_ref: Annotated[Name, Meta(description="Its name.")]
    weight: Annotated[float, Meta(description="Of a scorer, 1 if absent.")] | None = None


class SchedulingProfileSpec(ResourceModel, frozen=True, kw_only=True):
    """A scheduling profile."""

    name: Annotated[Name, Meta(description="Tiers of pools name it.")]
    plugins: Annotated[list[ProfilePluginSpec], Meta(max_length=_LIST_MAX)] = field(
        default_factory=list
    )


class EndpointPickerConfig(ResourceModel, frozen=True, kw_only=True):
    """The document.

    Sections that configure what this picker does in its own way are read over; :attr:`unsupported`
    names those that are given.
    """

    api_version: str
    kind: str
    plugins: Annotated[list[PluginSpec], Meta(max_length=_LIST_MAX)] = field(default_factory=list)
    scheduling_profiles: Annotated[list[SchedulingProfileSpec], Meta(max_length=_LIST_MAX)] = field(
        default_factory=list
    )
    feature_gates: Any = None
    flow_control: Any = None
    data_layer: Any = None
    request_handler: Any = None
    saturation_detector: Any = None

    @property
    def unsupported(self) -> list[str]:
        """The sections that are given and have no effect."""
        sections = {
            "featureGates": self.feature_gates,
            "flowControl": self.flow_control,
            "dataLayer": self.data_layer,
            "requestHandler": self.request_handler,
            "saturationDetector": self.saturation_detector,
        }
        return [name for name, value in sections.items() if value not in (None, [], {})]


class PlacedConfig(NamedTuple):
    """A configuration among resource files.

    Attributes:
        config: What it says.
        file: The name of the file in which it stands.
    """

    config: EndpointPickerConfig
    file: str


def read_endpoint_picker_config(
    content: bytes, file: str, settings: ResourceSettings
) -> EndpointPickerConfig:
    """Return the configuration that a file holds.

    Args:
        content: The file's bytes, YAML or JSON.
        file: Its name, for errors.
        settings: What is too much.

    Raises:
        ConfigError: It holds none, or something is wrong with it; the first flaw is told.
    """
    try:
        documents = [found for found in parse_documents(content, settings) if found is not None]
    except UnreadableFileError as error:
        raise _refused(error.flaw, file) from None
    if len(documents) != 1:
        flaw = Flaw(field="", value=f"{len(documents)} documents", allowed=f"one {KIND}")
        raise _refused(flaw, file)
    return _read(documents[0], file)


def find_endpoint_picker_config(
    files: Iterable[SourceFile], settings: ResourceSettings
) -> PlacedConfig | None:
    """Return the configuration that stands among resource files, None if there is none.

    Args:
        files: All of them; whatever else is wrong with them is told by their loader.
        settings: What is too much.

    Raises:
        ConfigError: There are several, or something is wrong with it.
    """
    found: list[tuple[Document, str]] = []
    for source in files:
        if not source.problem and KIND.encode() in source.content:
            found += [(document, source.name) for document in _documents(source, settings)]
    if len(found) > 1:
        names = ", ".join(f"{name}#{document.number}" for document, name in found)
        raise ConfigError(field=KIND, value=names, allowed="one in all files")
    return PlacedConfig(_read(*found[0]), found[0][1]) if found else None


def is_endpoint_picker_config(value: object) -> bool:
    """Return whether a document is one, whatever else it says."""
    return isinstance(value, dict) and value.get("kind") == KIND


def _documents(source: SourceFile, settings: ResourceSettings) -> list[Document]:
    """Return the documents of *source* that are one; none of a file that is no YAML."""
    try:
        return [
            found
            for found in parse_documents(source.content, settings)
            if found is not None and is_endpoint_picker_config(found.value)
        ]
    except UnreadableFileError:
        return []


def _read(document: Document, file: str) -> EndpointPickerConfig:
    value = document.value
    flaws = [*document.flaws, *_flaws_of_head(value)]
    if not flaws and isinstance(value, dict):
        try:
            return msgspec.convert(_without_nulls(value), EndpointPickerConfig)
        except (msgspec.ValidationError, RecursionError) as error:
            flaws = list(flaws_of(value, schema_of(EndpointPickerConfig), ""))
            flaws = flaws or [Flaw(field="", value=KIND, allowed=str(error))]
    raise _refused(flaws[0], file)


def _flaws_of_head(value: object) -> Iterator[Flaw]:
    """Yield what is wrong with the kind and its version."""
    if not isinstance(value, dict):
        yield Flaw(field="", value=shown(value), allowed=f"a {KIND}")
        return
    for key, allowed in (("kind", (KIND,)), ("apiVersion", API_VERSIONS)):
        if value.get(key) not in allowed:
            yield Flaw(field=key, value=shown(value.get(key)), allowed=" or ".join(allowed))


def _without_nulls(value: dict[str, object]) -> dict[str, object]:
    """Return an object without the members that are null, which count as absent."""
    return {name: member for name, member in value.items() if member is not None}


def _refused(flaw: Flaw, file: str) -> ConfigError:
    source = f"{file}:{flaw.line}" if flaw.line else file
    return ConfigError(
        field=flaw.field or KIND,
        value=flaw.value.strip("'"),  # the error puts it in quotes itself
        allowed=flaw.allowed,
        source=source,
    )
