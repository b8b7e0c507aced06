"""Settings of what the picker knows of caches: its index, its own memory, and its trust in both."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerPrefixSettings:
    """What counts as warm, what is remembered of Picks, and how far claims are believed."""

    index_timeout_ns: int = knob(
        30 * NS_PER_MS,
        flag="picker-index-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        maximum=10 * NS_PER_S,
        help="Longest wait for the index at one Pick; then it goes on without, as DEGRADED.",
    )
    index_stale_ns: int = knob(
        300 * NS_PER_S,
        flag="picker-index-stale-after",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="Silence of a worker in the index after which the picker's own memory counts, too.",
    )
    unseen_warning_ns: int = knob(
        60 * NS_PER_S,
        flag="picker-index-unseen-after",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="How long the index may not have heard of a worker before the log says so.",
    )
    replicas_max: int = knob(
        100_000,
        flag="picker-max-index-replicas",
        kind=KnobKind.INTEGER,
        unit="replicas",
        minimum=1,
        help="Most replicas of which it is remembered when the index last heard of them.",
    )
    host_share: float = knob(
        0.75,
        flag="picker-host-memory-share",
        kind=KnobKind.NUMBER,
        unit="of the tokens",
        minimum=0.0,
        maximum=1.0,
        help="What a token in host memory (T2) counts, beside one in the engine's own cache.",
    )
    storage_share: float = knob(
        0.25,
        flag="picker-storage-share",
        kind=KnobKind.NUMBER,
        unit="of the tokens",
        minimum=0.0,
        maximum=1.0,
        help="What a token on storage (T3, and anything colder) counts.",
    )
    stretch_tokens_min: int = knob(
        64,
        flag="picker-prefix-min-stretch-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=1,
        maximum=65_536,
        help="Smaller blocks are remembered together, so many tokens at a time.",
    )
    endpoint_blocks_max: int = knob(
        31_250,
        flag="picker-prefix-max-endpoint-blocks",
        kind=KnobKind.INTEGER,
        unit="stretches",
        minimum=1,
        help="Stretches of prompts remembered per worker; what its cache holds is a good number.",
    )
    blocks_max: int = knob(
        500_000,
        flag="picker-prefix-max-blocks",
        kind=KnobKind.INTEGER,
        unit="stretches",
        minimum=1,
        help="Stretches of prompts remembered of all workers together.",
    )
    idle_ns: int = knob(
        600 * NS_PER_S,
        flag="picker-prefix-idle",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="How long it is remembered where a prompt went, if nothing like it comes again.",
    )
    expected_min_ns: int = knob(
        2 * NS_PER_S,
        flag="picker-prefix-expected-min",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="How long a prompt is taken to be warm where it was sent, without the engine's word.",
    )
    expected_ttfts: float = knob(
        2.0,
        flag="picker-prefix-expected-ttfts",
        kind=KnobKind.NUMBER,
        unit="times the expected time to the first token",
        minimum=0.0,
        maximum=100.0,
        help="The same, for prompts that take long; the longer of both counts.",
    )
    trust_step: float = knob(
        0.1,
        flag="picker-prefix-trust-step",
        kind=KnobKind.NUMBER,
        unit="of the difference",
        minimum=0.001,
        maximum=1.0,
        help="How far one report of cached tokens moves the trust in what is said of a worker.",
    )
    trust_min: float = knob(
        0.1,
        flag="picker-prefix-min-trust",
        kind=KnobKind.NUMBER,
        unit="of the tokens",
        minimum=0.0,
        maximum=1.0,
        help="Trust below this counts as none.",
    )
    slack_tokens: int = knob(
        64,
        flag="picker-prefix-slack-tokens",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=0,
        help="By how much a report may differ from what was expected and still agree.",
    )
    suspect_reports: int = knob(
        20,
        flag="picker-prefix-suspect-reports",
        kind=KnobKind.INTEGER,
        unit="reports",
        minimum=1,
        help="Reports of a worker before it counts for the state TokenizerSuspect of its set.",
    )
    suspect_agreement: float = knob(
        0.3,
        flag="picker-prefix-suspect-agreement",
        kind=KnobKind.NUMBER,
        unit="of the tokens",
        minimum=0.0,
        maximum=1.0,
        help="A set whose workers all agree less than this with the index is TokenizerSuspect.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerIndexSettings:
    """An index in another server, asked over gRPC; files are read once, at the start."""

    address: str = knob(
        "",
        flag="picker-index-address",
        kind=KnobKind.TEXT,
        help="HOST:PORT of another server's gRPC whose index is asked; empty asks the one here.",
    )
    ca_file: str = knob(
        "",
        flag="picker-index-ca-file",
        kind=KnobKind.TEXT,
        help="Certificate authorities (PEM) of that server; without it connections are plaintext.",
    )
    cert_file: str = knob(
        "",
        flag="picker-index-client-cert-file",
        kind=KnobKind.TEXT,
        help="Certificate chain (PEM) for a server that asks for one.",
    )
    key_file: str = knob(
        "",
        flag="picker-index-client-key-file",
        kind=KnobKind.TEXT,
        help="Private key (PEM) of that certificate.",
    )
    cold_recheck_ns: int = knob(
        NS_PER_S,
        flag="picker-index-cold-recheck",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long that server's word holds that it has, or has not, heard of a model.",
    )
    cold_domains_max: int = knob(
        1_024,
        flag="picker-index-max-cold-domains",
        kind=KnobKind.INTEGER,
        unit="tenants' models",
        minimum=1,
        help="Most models of tenants of which it is remembered what that server has heard.",
    )
