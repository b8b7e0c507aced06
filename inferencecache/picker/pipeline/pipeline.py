"""A pipeline: the plugins of one configuration by hook, in order, and its profiles."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from inferencecache.picker.pipeline.hooks import (
    Admitter,
    PreAdmitter,
    PreRequest,
    ProfileHandler,
    ResponseBodyProcessor,
    ResponseHeaderProcessor,
)
from inferencecache.picker.pipeline.plugin import Named
from inferencecache.picker.pipeline.producer_plan import ProducerStep
from inferencecache.picker.pipeline.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """What a configuration comes to; it never changes.

    Attributes:
        pre_admitters: In the order of the configuration, like all others but producers.
        producers: In the order of their keys.
        admitters: All must say yes.
        profiles: By name, in the order of the configuration; none leaves the order to others.
        profile_handler: Asked where a tier names no profile; None takes the first one.
        pre_requests: Told of a choice before the caller is.
        header_processors: Told that an answer has begun.
        body_processors: Told of the first token and of the end.
    """

    pre_admitters: tuple[Named[PreAdmitter], ...] = ()
    producers: tuple[ProducerStep, ...] = ()
    admitters: tuple[Named[Admitter], ...] = ()
    profiles: Mapping[str, Profile] = field(default_factory=lambda: MappingProxyType({}))
    profile_handler: Named[ProfileHandler] | None = None
    pre_requests: tuple[Named[PreRequest], ...] = ()
    header_processors: tuple[Named[ResponseHeaderProcessor], ...] = ()
    body_processors: tuple[Named[ResponseBodyProcessor], ...] = ()

    @property
    def follows_responses(self) -> bool:
        """Whether anybody wants to know how requests go on."""
        return bool(self.header_processors or self.body_processors)


EMPTY_PIPELINE: Final = Pipeline()
"""No plugins at all."""
