"""What an engine makes of its ``--kv-events-config``: whether, where and how it publishes."""

from dataclasses import dataclass
from typing import Final

import msgspec

from inferencecache.errors import ConfigError
from inferencecache.simulation.engine_layout import BindRule, EngineLayout

_FLAG: Final = "--kv-events-config"
_BINDING: Final = ("ipc://", "inproc://")


class _Common(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Fields of every engine."""

    publisher: str | None = None
    endpoint: str = "tcp://*:5557"
    replay_endpoint: str | None = None
    buffer_steps: int = 10_000
    hwm: int = 100_000
    max_queue_size: int = 100_000
    topic: str = ""


class _Vllm(_Common, kw_only=True):
    enable_kv_cache_events: bool = False


class _Sglang(_Common, kw_only=True):
    bind: bool | None = None
    format: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublisherPlan:
    """What an engine's publisher does.

    Attributes:
        is_publishing: Whether there are any events at all.
        endpoint: Where they go.
        is_binding: Whether the publisher listens there; otherwise it connects, and a subscriber
            that connects too never meets it.
        replay_endpoint: Where replays are asked for, or empty.
        buffer_steps: Messages kept for replay.
        topic: What messages are published under.
    """

    is_publishing: bool = True
    endpoint: str
    is_binding: bool = True
    replay_endpoint: str = ""
    buffer_steps: int = 10_000
    topic: str = ""


def plan_of(config: str, layout: EngineLayout) -> PublisherPlan:
    """Read a configuration as the engine of *layout* does.

    Args:
        config: The JSON text.
        layout: The release.

    Raises:
        ConfigError: The engine would not take it.
    """
    fields: type[_Vllm | _Sglang] = _Sglang if layout.is_sglang else _Vllm
    try:
        read = msgspec.json.decode(config, type=fields)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        allowed = f"a configuration that {layout.name} takes ({error})"
        raise ConfigError(field=_FLAG, value=config, allowed=allowed) from error
    is_enabled = isinstance(read, _Sglang) or read.enable_kv_cache_events
    is_asked = read.publisher == "zmq" or (read.publisher is None and layout.publishes_unasked)
    bind = read.bind if isinstance(read, _Sglang) else None
    return PublisherPlan(
        is_publishing=is_enabled and is_asked,
        endpoint=read.endpoint,
        is_binding=binds(read.endpoint, layout.bind_rule) if bind is None else bind,
        replay_endpoint=read.replay_endpoint or "",
        buffer_steps=read.buffer_steps,
        topic=read.topic,
    )


def binds(endpoint: str, rule: BindRule) -> bool:
    """Tell whether a publisher listens at *endpoint* rather than connecting to it."""
    if "*" in endpoint or "::" in endpoint or endpoint.startswith(_BINDING):
        return True
    return rule is BindRule.ANY_HOST and "0.0.0.0" in endpoint  # noqa: S104 - compared, not bound
