"""Settings of delivery: which servers a producer tells what it knows, and how."""

from dataclasses import dataclass

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """Servers, repetition and renewal."""

    servers: str = knob(
        "127.0.0.1:9090",
        flag="server",
        kind=KnobKind.TEXT,
        help="HOST:PORT of a server's gRPC; several are separated by commas, and each gets "
        "everything.",
    )
    refresh_interval_ns: int = knob(
        600 * NS_PER_S,
        flag="refresh-interval",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Pause after which everything held is reported again, to outlive the server's TTL; "
        "keep it below half of that. 0 means never.",
    )
    refresh_keys_per_s: int = knob(
        20_000,
        flag="refresh-rate",
        kind=KnobKind.INTEGER,
        unit="keys per second",
        minimum=1,
        help="Fastest pace of that.",
    )
    resync_keys_max: int = knob(
        32_768,
        flag="max-resync-keys",
        kind=KnobKind.INTEGER,
        unit="keys",
        minimum=1,
        help="Keys of the live set queued at a time when a server is told everything again.",
    )
    evictions_max: int = knob(
        16_384,
        flag="max-evictions-under-way",
        kind=KnobKind.INTEGER,
        unit="keys",
        minimum=1,
        help="Evictions waiting for a server beyond which the replica is cleared there and told "
        "anew, since each one is a call.",
    )
    evictions_in_flight_max: int = knob(
        32,
        flag="evictions-in-flight",
        kind=KnobKind.INTEGER,
        unit="calls",
        minimum=1,
        maximum=1_000,
        help="Evictions sent at a time; more are not faster but keep stores waiting at the server.",
    )
    retry_initial_ns: int = knob(
        100 * NS_PER_MS,
        flag="retry-initial",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest pause before a failed delivery is repeated; later pauses may be longer.",
    )
    retry_max_ns: int = knob(
        5 * NS_PER_S,
        flag="retry-max",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=NS_PER_MS,
        help="Longest pause between two attempts; each pause is drawn at random up to its limit.",
    )
    clear_on_start: bool = knob(
        True,
        flag="clear-on-start",
        kind=KnobKind.BOOLEAN,
        help="Clear the replicas first, since what an earlier producer reported may be gone.",
    )

    round_keys_max: int = knob(
        8_192,
        flag="max-round-keys",
        kind=KnobKind.INTEGER,
        unit="keys",
        minimum=1,
        maximum=1_048_576,
        help="Most keys of one replica sent before their acknowledgement is waited for.",
    )
    round_chains_max: int = knob(
        1_024,
        flag="max-round-chains",
        kind=KnobKind.INTEGER,
        unit="chains",
        minimum=1,
        maximum=1_048_576,
        help="Most stretches of prompts that these keys may be part of.",
    )
    drain_ns: int = knob(
        5 * NS_PER_S,
        flag="drain-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=0,
        help="Longest time that reachable servers get to take what is pending at the end.",
    )

    def targets(self) -> tuple[str, ...]:
        """Return the servers, each once, in order."""
        return tuple(dict.fromkeys(filter(None, map(str.strip, self.servers.split(",")))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTlsSettings:
    """How the producer checks servers, and what it shows them; read once, at the start."""

    ca_file: str = knob(
        "",
        flag="server-ca-file",
        kind=KnobKind.TEXT,
        help="Certificate authorities (PEM) of the servers; without it connections are plaintext.",
    )
    cert_file: str = knob(
        "",
        flag="server-client-cert-file",
        kind=KnobKind.TEXT,
        help="Certificate chain (PEM) for servers that ask for one.",
    )
    key_file: str = knob(
        "",
        flag="server-client-key-file",
        kind=KnobKind.TEXT,
        help="Private key (PEM) of that certificate.",
    )
