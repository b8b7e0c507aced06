"""Settings of the policy store: what holds where no policy says otherwise."""

from dataclasses import dataclass

from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySettings:
    """Defaults of the lookup gates and the size limit of a policy push."""

    minimum_matched_tokens: int = knob(
        64,
        flag="minimum-matched-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=0,
        maximum=2**31 - 1,
        help="Shortest match worth a hint for tenants without a policy; 0 accepts any.",
    )
    routing_floor_score: float = knob(
        0.1,
        flag="routing-floor-score",
        kind=KnobKind.NUMBER,
        unit="score",
        minimum=0,
        maximum=1e12,
        help="Smallest best score worth a hint where a policy names none; 0 accepts any.",
    )
    affinity_routing: bool = knob(
        True,
        flag="affinity-routing",
        kind=KnobKind.BOOLEAN,
        help="Spread unknown prompts by their hash where a policy does not say.",
    )
    chain_matching: bool = knob(
        True,
        flag="chain-matching",
        kind=KnobKind.BOOLEAN,
        help="Match block by block where a policy does not say.",
    )
    require_chain: bool = knob(
        False,
        flag="require-chain",
        kind=KnobKind.BOOLEAN,
        help="Refuse lookups without a block chain where a policy does not say.",
    )
    tenant_hot: bool = knob(
        True,
        flag="tenant-hot",
        kind=KnobKind.BOOLEAN,
        help="Answer an exact miss with warm replicas where a policy does not say.",
    )
    push_body_bytes_max: int = knob(
        1_048_576,
        flag="max-policy-body-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="Largest accepted body of a policy push.",
    )
