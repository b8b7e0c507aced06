"""Settings of the pages by which a producer or a gateway shows its own state."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPageLimits:
    """How long, and how many, connections to these pages may be."""

    header_timeout_ns: int = knob(
        5 * NS_PER_S,
        flag="metrics-header-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close a connection to these pages whose request line and headers take longer.",
    )
    answer_timeout_ns: int = knob(
        30 * NS_PER_S,
        flag="metrics-answer-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Close a connection to these pages whose peer does not take what it has asked for.",
    )
    idle_timeout_ns: int = knob(
        75 * NS_PER_S,
        flag="metrics-idle-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_S,
        help="Close a connection to these pages that sends no complete request for this long.",
    )
    connections_max: int = knob(
        128,
        flag="metrics-max-connections",
        kind=KnobKind.INTEGER,
        unit="connections",
        minimum=1,
        maximum=100_000,
        help="Open connections to these pages; when all are taken, a peer with few of them gets "
        "one of the peer with most.",
    )
