"""Settings of the picker's bodies and decisions: how much is kept, for how long."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob

_MIB = 1_048_576
_CHUNK_MAX = _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerSettings:
    """Where the picker listens, what it may hold and when it lets go."""

    bind_address: str = knob(
        "",
        flag="picker-bind-address",
        kind=KnobKind.TEXT,
        help="Address of the picker's own listener; empty serves it beside the cache plane.",
    )
    endpoints: str = knob(
        "",
        flag="picker-endpoints",
        kind=KnobKind.TEXT,
        help="Fixed destinations, MODEL=HOST:PORT or MODEL=HOST:PORT/TARGET-MODEL, with commas.",
    )
    chunk_bytes_max: int = knob(
        _CHUNK_MAX,
        flag="picker-max-chunk-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        maximum=_CHUNK_MAX,
        help="Largest chunk of a body in either direction.",
    )
    body_bytes_max: int = knob(
        128 * _MIB,
        flag="picker-max-body-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Largest body.",
    )
    buffered_bytes_max: int = knob(
        1_024 * _MIB,
        flag="picker-max-buffered-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        help="Most bytes of all bodies together.",
    )
    bodies_max: int = knob(
        10_000,
        flag="picker-max-bodies",
        kind=KnobKind.INTEGER,
        unit="bodies",
        minimum=1,
        help="Most bodies at a time, from the first byte of the upload until they are let go.",
    )
    identifier_bytes_max: int = knob(
        4_096,
        flag="picker-max-identifier-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes of UTF-8",
        minimum=64,
        help="Longest tenant of a Pick, and namespace, name or version of its pool.",
    )
    decisions_max: int = knob(
        300_000,
        flag="picker-max-decisions",
        kind=KnobKind.INTEGER,
        unit="decisions",
        minimum=1,
        help=(
            "Most decisions, and used-up ids, remembered; at the cap the oldest is forgotten, "
            "first of those whose answer is complete."
        ),
    )
    upload_idle_ns: int = knob(
        30 * NS_PER_S,
        flag="picker-upload-idle",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help=(
            "Longest silence within an upload, from one whole message to the next; how long the "
            "upload takes does not matter."
        ),
    )
    begin_wait_ns: int = knob(
        20 * NS_PER_MS,
        flag="picker-begin-wait",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Longest wait of an upload, or the answer to a report, while requests are at work; "
        "0 has none wait.",
    )
    body_ttl_ns: int = knob(
        60 * NS_PER_S,
        flag="picker-body-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long an uploaded body waits for its Pick.",
    )
    unpulled_ttl_ns: int = knob(
        60 * NS_PER_S,
        flag="picker-unpulled-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a picked body waits for its PullBody; its decision lives on.",
    )
    decision_ttl_ns: int = knob(
        900 * NS_PER_S,
        flag="picker-decision-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a decision waits for reports; the first token starts it anew.",
    )
    ended_ttl_ns: int = knob(
        60 * NS_PER_S,
        flag="picker-ended-ttl",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="How long a decision whose final report has come waits for a late first one.",
    )
    prompt_tokens_beyond_body_max: int = knob(
        1_048_576,
        flag="picker-max-tokens-beyond-body",
        kind=KnobKind.INTEGER,
        unit="tokens",
        minimum=0,
        help=(
            "Most tokens of a prompt, as reported, beyond the bytes of its body: of templates, of "
            "media and history that are elsewhere. Reports of more count as bad."
        ),
    )
    pull_chunk_bytes: int = knob(
        256 * 1_024,
        flag="picker-pull-chunk-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1,
        maximum=_CHUNK_MAX,
        help="Size of the chunks in which a body is handed back.",
    )
    tick_ns: int = knob(
        100 * NS_PER_MS,
        flag="picker-tick",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Pause between two looks for bodies and decisions whose time is over.",
    )
    give_back_bytes: int = knob(
        64 * _MIB,
        flag="picker-give-back-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=_MIB,
        help="When bodies take this much less than before, free memory goes back to the system.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerParseSettings:
    """What a body may look like, and where it is read."""

    depth_max: int = knob(
        128,
        flag="picker-max-depth",
        kind=KnobKind.INTEGER,
        unit="levels",
        minimum=2,
        maximum=512,
        help="Deepest nesting of a body; the body itself is the first level.",
    )
    digits_max: int = knob(
        4_300,
        flag="picker-max-digits",
        kind=KnobKind.INTEGER,
        unit="digits",
        minimum=20,
        help="Longest run of digits in a number of a body.",
    )
    model_bytes_max: int = knob(
        4_096,
        flag="picker-max-model-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes of UTF-8",
        minimum=1,
        help="Longest name of a model in a body.",
    )
    allow_unknown_shape: bool = knob(
        default=True,
        flag="picker-allow-unknown-shape",
        kind=KnobKind.BOOLEAN,
        help="Route a body of no known API by its model alone, as DEGRADED; else BAD_REQUEST.",
    )
    inline_bytes_max: int = knob(
        1_048_576,
        flag="picker-inline-parse-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=0,
        help="Larger bodies are read by a process beside the server, so that nobody waits.",
    )
    processes_max: int = knob(
        1,
        flag="picker-parse-processes",
        kind=KnobKind.INTEGER,
        unit="processes",
        minimum=1,
        maximum=64,
        help="Processes that read large bodies, started with the first one.",
    )
