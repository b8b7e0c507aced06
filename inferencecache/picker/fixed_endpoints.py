"""Endpoints that are written down in a setting: a small fleet without any files."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from inferencecache.clock import NS_PER_MS
from inferencecache.errors import ConfigError
from inferencecache.picker.fleet import (
    Endpoint,
    EngineKind,
    Fleet,
    ModelRow,
    ObjectName,
    Pool,
    PriorsForEngine,
    RankBy,
    Tier,
    WorkerSet,
)
from inferencecache.settings.address import BindAddress
from inferencecache.settings.fleet import FleetSettings

ENDPOINTS_FORM: Final = "MODEL=HOST:PORT or MODEL=HOST:PORT/TARGET-MODEL, separated by commas"

FIXED_TIER: Final = "fixed"
"""The tier of these endpoints, which comes before all others."""

_NAMESPACE: Final = "picker-endpoints"
_PERCENT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedEndpoint:
    """One endpoint of one model.

    Attributes:
        model: The name that clients use.
        endpoint: ``host:port``.
        target_model: The name that the engine uses.
    """

    model: str
    endpoint: str
    target_model: str


def read_endpoints(text: str) -> list[FixedEndpoint]:
    """Read the setting that lists endpoints.

    >>> read_endpoints("gpt=10.0.0.1:8000/llama")[0].target_model
    'llama'

    Raises:
        ConfigError: It has another form.
    """
    return [_read_endpoint(item) for item in text.split(",") if item.strip()]


def with_fixed(fleet: Fleet, endpoints: Iterable[FixedEndpoint], settings: FleetSettings) -> Fleet:
    """Return *fleet* with *endpoints* as its first tier, for Picks that name no pool.

    Args:
        fleet: What there is besides.
        endpoints: One worker set for each pair of names.
        settings: What is believed of their engines.
    """
    addresses: dict[tuple[str, str], dict[str, None]] = {}
    for fixed in endpoints:
        names = (fixed.model, fixed.target_model)
        addresses.setdefault(names, {})[fixed.endpoint] = None
    if not addresses:
        return fleet
    tier = Tier(
        name=FIXED_TIER,
        rank_by=RankBy.ESTIMATED_TTFT,
        profile="",
        members=tuple(
            _worker_set(number, *names, tuple(found), settings)
            for number, (names, found) in enumerate(addresses.items())
        ),
        saturation_max=settings.saturation_percent_max / _PERCENT,
        is_rank_default=True,
    )
    everything: Pool = fleet.everything
    return replace(fleet, everything=replace(everything, tiers=(tier, *everything.tiers)))


def _worker_set(
    number: int,
    model: str,
    target_model: str,
    addresses: tuple[str, ...],
    settings: FleetSettings,
) -> WorkerSet:
    return WorkerSet(
        key=ObjectName(namespace=_NAMESPACE, name=str(number)),
        models=(ModelRow(name=target_model, aliases=() if model == target_model else (model,)),),
        endpoints=tuple(Endpoint(name=address, address=address) for address in addresses),
        engine=EngineKind.VLLM,
        block_size_tokens=None,
        hash_scheme="",
        index_tenant="",
        tokenizer="",
        chat_template="",
        priors=PriorsForEngine(
            prefill_tokens_per_s=settings.prefill_tokens_per_s,
            base_ttft_ms=settings.base_ttft_ns / NS_PER_MS,
            concurrency_max=settings.concurrency_max,
        ),
    )


def _read_endpoint(item: str) -> FixedEndpoint:
    model, _, rest = item.strip().partition("=")
    endpoint, slash, target_model = rest.partition("/")
    try:
        address = BindAddress.parse(endpoint)
    except ValueError:
        raise _form_error(item) from None
    if not model or not address.host or not address.port or (slash and not target_model):
        raise _form_error(item)
    return FixedEndpoint(model=model, endpoint=endpoint, target_model=target_model or model)


def _form_error(item: str) -> ConfigError:
    return ConfigError(field="picker-endpoints", value=item, allowed=ENDPOINTS_FORM)
