"""How each engine release writes its events, by the first release of each form.

Rules of this file
    1. One row per form, under the first release that has it; a release uses the last row that is
       not newer than itself.
    2. A row lists facts only; ``event_payload`` turns them into bytes.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from inferencecache.errors import ConfigError


class HashForm(StrEnum):
    """How a block's label is written."""

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    BYTES_8 = "bytes8"
    BYTES_16 = "bytes16"
    BYTES_32 = "bytes32"


class BindRule(StrEnum):
    """When a publisher binds its endpoint; otherwise it connects, and nobody listens."""

    WILDCARD = "wildcard"
    """``*``, ``::``, ``ipc://`` and ``inproc://``."""

    ANY_HOST = "any_host"
    """These and ``0.0.0.0``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLayout:
    """One form of events.

    Attributes:
        name: Engine and first release, for example ``vllm-0.24``.
        stored_width: Elements of a stored array, tag included; 0 for maps.
        removed_width: Elements of a removed array; 0 for maps.
        envelope_width: Elements of the envelope: 3 with the rank, 2 without.
        map_keys: Keys a stored map can have; 16 and more are written with a wide header.
        optional_keys: Map keys that are left out while they have no value.
        hash_form: How labels are written unless told otherwise.
        replay_has_topic: Whether a replay's messages carry the topic.
        has_usage_gauge_by_old_name: Whether the metrics page says ``gpu_cache_usage_perc``.
        bind_rule: When the publisher binds.
        publishes_unasked: Whether a configuration without ``publisher`` publishes.
    """

    name: str
    stored_width: int = 0
    removed_width: int = 0
    envelope_width: int = 3
    map_keys: int = 0
    optional_keys: frozenset[str] = frozenset()
    hash_form: HashForm = HashForm.UNSIGNED
    replay_has_topic: bool = False
    has_usage_gauge_by_old_name: bool = False
    bind_rule: BindRule = BindRule.WILDCARD
    publishes_unasked: bool = True

    @property
    def is_sglang(self) -> bool:
        """Whether the engine is SGLang."""
        return self.name.startswith("sglang")

    @property
    def uses_maps(self) -> bool:
        """Whether events are maps."""
        return self.stored_width == 0

    @property
    def has_groups(self) -> bool:
        """Whether an event can name its KV group."""
        return self.stored_width >= _GROUP_WIDTH or "group_idx" in self.optional_keys


_GROUP_WIDTH: Final = 10

_VLLM_MAP: Final = frozenset(
    {"extra_keys", "group_idx", "kv_cache_spec_kind", "kv_cache_spec_sliding_window"}
)
_SGLANG_MAP: Final = frozenset({"cache_salt", "session_id"})

_ROWS: Final = (
    EngineLayout(
        name="vllm-0.9.0",
        stored_width=6,
        removed_width=2,
        envelope_width=2,
        hash_form=HashForm.SIGNED,
        has_usage_gauge_by_old_name=True,
        publishes_unasked=False,
    ),
    EngineLayout(
        name="vllm-0.9.1",
        stored_width=6,
        removed_width=2,
        hash_form=HashForm.SIGNED,
        has_usage_gauge_by_old_name=True,
        publishes_unasked=False,
    ),
    EngineLayout(name="vllm-0.10.2", stored_width=7, removed_width=3, publishes_unasked=False),
    EngineLayout(name="vllm-0.14", stored_width=8, removed_width=3),
    EngineLayout(name="vllm-0.17", stored_width=9, removed_width=3),
    EngineLayout(name="vllm-0.20", stored_width=10, removed_width=4),
    EngineLayout(name="vllm-0.22", stored_width=12, removed_width=4),
    EngineLayout(name="vllm-0.24", map_keys=12, optional_keys=_VLLM_MAP),
    EngineLayout(
        name="vllm-0.26",
        map_keys=13,
        optional_keys=_VLLM_MAP | {"locality"},
        replay_has_topic=True,
    ),
    EngineLayout(
        name="vllm-0.29",
        map_keys=14,
        optional_keys=_VLLM_MAP | {"locality", "ownership"},
        replay_has_topic=True,
    ),
    EngineLayout(
        name="vllm-0.30",
        map_keys=15,
        optional_keys=_VLLM_MAP | {"locality", "ownership", "session_id"},
        replay_has_topic=True,
    ),
    EngineLayout(
        name="vllm-0.33",
        map_keys=16,
        optional_keys=_VLLM_MAP | {"locality", "ownership", "session_id", "lookahead_token_ids"},
        replay_has_topic=True,
    ),
    EngineLayout(
        name="sglang-0.4.7",
        stored_width=6,
        removed_width=2,
        hash_form=HashForm.SIGNED,
        publishes_unasked=False,
    ),
    EngineLayout(
        name="sglang-0.5.9",
        stored_width=7,
        removed_width=3,
        hash_form=HashForm.SIGNED,
        publishes_unasked=False,
    ),
    EngineLayout(
        name="sglang-0.5.13",
        stored_width=7,
        removed_width=3,
        hash_form=HashForm.SIGNED,
        bind_rule=BindRule.ANY_HOST,
        publishes_unasked=False,
    ),
    EngineLayout(
        name="sglang-0.5.20",
        map_keys=9,
        optional_keys=_SGLANG_MAP,
        hash_form=HashForm.SIGNED,
        bind_rule=BindRule.ANY_HOST,
        publishes_unasked=False,
    ),
    EngineLayout(
        name="sglang-0.5.22",
        map_keys=10,
        optional_keys=_SGLANG_MAP | {"lora_name"},
        hash_form=HashForm.SIGNED,
        replay_has_topic=True,
        bind_rule=BindRule.ANY_HOST,
        publishes_unasked=False,
    ),
)

LAYOUTS: Final = {row.name: row for row in _ROWS}
"""Every form, by name, in order of release."""

LAYOUT_NAMES: Final = tuple(LAYOUTS)


def layout_of(release: str) -> EngineLayout:
    """Return the form a release uses.

    Args:
        release: Engine and release, for example ``vllm-0.25.1``; a row's own name always works.

    Raises:
        ConfigError: The engine is unknown, or the release older than the first form.
    """
    engine, _, version = release.partition("-")
    wanted = _parts(version)
    fitting = [
        row
        for row in _ROWS
        if row.name.partition("-")[0] == engine and _parts(row.name.partition("-")[2]) <= wanted
    ]
    if not fitting or not wanted:
        raise ConfigError(
            field="--layout",
            value=release,
            allowed=f"an engine and release such as {', '.join(LAYOUT_NAMES)}",
        )
    return fitting[-1]


def _parts(version: str) -> tuple[int, ...]:
    """Return the numbers of a version; nothing if it has none."""
    pieces = version.split(".")
    return tuple(int(piece) for piece in pieces) if all(map(str.isdecimal, pieces)) else ()
