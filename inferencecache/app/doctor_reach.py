"""What the ports of an engine say: who listens, and whether it is the right socket."""

from collections.abc import Iterator, Sequence
from typing import Final

from inferencecache.app.doctor_findings import Finding, finding
from inferencecache.transport.doctor_port import Port, PortState

PUBLISHERS: Final = frozenset({"PUB", "XPUB"})
ROUTER: Final = "ROUTER"

_BIND_HELP: Final = (
    "Either events are off, or the publisher connects instead of listening: it listens only at an "
    'endpoint with "*" such as "tcp://*:5557", not at a host or (vLLM, SGLang before 0.5.13) '
    "0.0.0.0; or rank and port do not fit"
)
_NO_REPLAY: Final = (
    "nothing listens there: the engine's replay_endpoint is not set, or it is at another port; "
    "rank r replays r ports above rank 0"
)
_CODE_OF: Final = {
    PortState.BAD_ENDPOINT: "EC001",
    PortState.UNRESOLVED: "EC002",
    PortState.REFUSED: "EC003",
    PortState.TIMED_OUT: "EC004",
    PortState.UNREACHABLE: "EC004",
    PortState.NOT_ZMQ: "EC005",
    PortState.SECURED: "EC007",
}

_MEANING: Final = {
    PortState.BAD_ENDPOINT: "this is no endpoint to connect to; give tcp://HOST:PORT with the "
    "engine's address and a port from 1 to 65535",
    PortState.UNRESOLVED: "the host has no address: {detail}",
    PortState.REFUSED: f"nothing listens there. {_BIND_HELP}",
    PortState.TIMED_OUT: "no answer to a connection: a firewall, a network policy, or a wrong "
    "address",
    PortState.UNREACHABLE: "it cannot be reached: {detail}",
    PortState.NOT_ZMQ: "something listens there that is no ZMQ socket: {detail}",
    PortState.SECURED: "it wants ZMQ security {detail}, which engines and subscribers lack",
    PortState.ZMQ: "a ZMQ {detail} listens there",
}


def judge_engine_port(port: Port) -> Finding:
    """Return what the engine's own endpoint says."""
    if port.state is not PortState.ZMQ:
        return finding(_CODE_OF[port.state], port.endpoint, _explain(port))
    if port.detail in PUBLISHERS:
        return finding("EC008", port.endpoint, "a ZMQ publisher listens there")
    message = f"a ZMQ {port.detail or 'socket without a type'} listens there, not a publisher"
    if port.detail == ROUTER:
        message += ": this looks like the replay endpoint"
    return finding("EC006", port.endpoint, message)


def judge_ranks(ports: Sequence[Port], beyond: Port) -> Iterator[Finding]:
    """Yield what the ports of ranks after the first say.

    Args:
        ports: Those of rank 1 and on; may be none.
        beyond: The port after the last rank's.
    """
    silent = [port for port in ports if not is_publisher(port)]
    for port in silent:
        yield finding(
            "ER002",
            port.endpoint,
            f"no publisher of another rank listens there: {_explain(port)}. Rank r publishes r "
            "ports above rank 0",
        )
    if is_publisher(beyond):
        yield finding(
            "ER003",
            beyond.endpoint,
            f"another publisher listens one port above the last rank of {len(ports) + 1}: if it "
            "is a rank of this engine, its blocks are missing; see --dp-size",
        )
    elif not silent:
        many = f"all {len(ports) + 1} ranks listen" if ports else "rank 0 listens"
        yield finding("ER001", "", f"{many}, and no more")


def judge_replay_port(port: Port) -> Finding | None:
    """Return what is wrong with the replay's port; None for nothing."""
    if port.state is PortState.REFUSED:
        return finding("EY003", port.endpoint, _NO_REPLAY)
    if port.state is not PortState.ZMQ:
        return finding("EY003", port.endpoint, _explain(port))
    if port.detail != ROUTER:
        message = f"a ZMQ {port.detail} listens there, not a ROUTER"
        if port.detail in PUBLISHERS:
            message += ": this is where events are published"
        return finding("EY007", port.endpoint, message)
    return None


def is_publisher(port: Port) -> bool:
    """Tell whether a publisher listens at *port*."""
    return port.state is PortState.ZMQ and port.detail in PUBLISHERS


def _explain(port: Port) -> str:
    return _MEANING[port.state].format(detail=port.detail)
