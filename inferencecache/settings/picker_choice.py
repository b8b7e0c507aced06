"""Settings of how the picker chooses: estimates, limits of rules, and what is remembered of it."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerChoiceSettings:
    """How destinations are chosen."""

    default_namespace: str = knob(
        "default",
        flag="picker-default-namespace",
        kind=KnobKind.TEXT,
        help="Namespace of a pool that a Pick names without one.",
    )
    bytes_per_token: int = knob(
        4,
        flag="picker-bytes-per-token",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        maximum=64,
        help="How many bytes of a prompt count as one token where tokens are not counted.",
    )
    estimate_share: float = knob(
        0.8,
        flag="picker-estimate-share",
        kind=KnobKind.NUMBER,
        unit="of the estimate",
        minimum=0.1,
        maximum=1.0,
        help="Share of an estimated prompt that must exceed a context window before it counts.",
    )
    batch_spread: float = knob(
        2.0,
        flag="picker-batch-spread",
        kind=KnobKind.NUMBER,
        unit="times",
        minimum=1.0,
        maximum=1_000.0,
        help="How many times what an engine has to do counts for a request of class BATCH.",
    )
    deferrable_saturation: float = knob(
        0.8,
        flag="picker-deferrable-saturation",
        kind=KnobKind.NUMBER,
        unit="of the concurrency",
        minimum=0.0,
        maximum=100.0,
        help="A DEFERRABLE request waits while its workers have more to do than this share.",
    )
    deferrable_wait_ns: int = knob(
        30 * NS_PER_S,
        flag="picker-deferrable-wait",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How long it waits before it is rejected; at most half of --picker-unpulled-ttl.",
    )
    deferrable_queue_max: int = knob(
        1_000,
        flag="picker-deferrable-queue",
        kind=KnobKind.INTEGER,
        unit="requests",
        minimum=0,
        maximum=100_000,
        help="Most requests that wait so; further ones are rejected at once.",
    )
    deadline_margin_ns: int = knob(
        50 * NS_PER_MS,
        flag="picker-deadline-margin",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="So long before its caller gives up a request stops waiting.",
    )
    explore_share: float = knob(
        0.01,
        flag="picker-explore-share",
        kind=KnobKind.NUMBER,
        unit="of the Picks",
        minimum=0.0,
        maximum=1.0,
        help="Share of Picks that go where nobody was heard of for longest, for evidence's sake.",
    )
    limited_tenants_max: int = knob(
        10_000,
        flag="picker-max-limited-tenants",
        kind=KnobKind.INTEGER,
        unit="tenants",
        minimum=1,
        help="Most tenants per limit whose rates are remembered; beyond, the idlest is forgotten.",
    )
    failures_kept_ns: int = knob(
        30 * NS_PER_S,
        flag="picker-avoid-for",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How long a request, by its client_request_id, avoids where it failed; 0 never does.",
    )
    failures_kept_max: int = knob(
        10_000,
        flag="picker-max-avoided",
        kind=KnobKind.INTEGER,
        unit="failures",
        minimum=0,
        maximum=1_000_000,
        help="Most failures of requests that are remembered so; beyond, the oldest is forgotten.",
    )
    records_max: int = knob(
        1_000,
        flag="picker-decision-records",
        kind=KnobKind.INTEGER,
        unit="records",
        minimum=0,
        maximum=100_000,
        help="How many of the last Picks are explained at /debug/decisions.",
    )
    record_candidates_max: int = knob(
        16,
        flag="picker-decision-record-candidates",
        kind=KnobKind.INTEGER,
        unit="candidates",
        minimum=1,
        maximum=1_000,
        help="How many candidates of a Pick are explained; the chosen one is among them.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerSuppressionSettings:
    """When a destination that fails is left alone, and for how long."""

    refusals: int = knob(
        2,
        flag="picker-suppress-after-refusals",
        kind=KnobKind.INTEGER,
        unit="failures",
        minimum=1,
        help="Reports of an unresolved or unauthorized backend that suppress a provider.",
    )
    missing_models: int = knob(
        3,
        flag="picker-suppress-after-missing-models",
        kind=KnobKind.INTEGER,
        unit="failures",
        minimum=1,
        help="Answers of 404 that suppress a model of a provider.",
    )
    failures: int = knob(
        3,
        flag="picker-suppress-after-failures",
        kind=KnobKind.INTEGER,
        unit="failures",
        minimum=1,
        help="Answers of 5xx in a row, or none at all, that suppress a destination.",
    )
    backoff_min_ns: int = knob(
        5 * NS_PER_S,
        flag="picker-suppress-min",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long the first suppression lasts; each further one lasts twice as long.",
    )
    backoff_max_ns: int = knob(
        300 * NS_PER_S,
        flag="picker-suppress-max",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest suppression.",
    )
    backoff_jitter: float = knob(
        0.2,
        flag="picker-suppress-jitter",
        kind=KnobKind.NUMBER,
        unit="of the time",
        minimum=0.0,
        maximum=0.9,
        help="By how much, up or down, a suppression is longer or shorter than that.",
    )
    probe_lease_ns: int = knob(
        30 * NS_PER_S,
        flag="picker-suppress-probe-lease",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long the one request that tries a suppressed destination keeps others away.",
    )
    cooldown_min_ns: int = knob(
        NS_PER_S,
        flag="picker-cooldown-min",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a destination rests after its first 429; after each further one twice that.",
    )
    cooldown_max_ns: int = knob(
        30 * NS_PER_S,
        flag="picker-cooldown-max",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest rest.",
    )
    tracked_max: int = knob(
        10_000,
        flag="picker-max-failing",
        kind=KnobKind.INTEGER,
        unit="destinations",
        minimum=1,
        help="Most destinations whose failures are counted; beyond, the oldest count is forgotten.",
    )
