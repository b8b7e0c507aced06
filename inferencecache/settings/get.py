"""Settings of ``inferencecache get``: which server is asked, and as whom."""

from dataclasses import dataclass, field

from inferencecache.clock import NS_PER_MS, NS_PER_S
from inferencecache.errors import ConfigError
from inferencecache.settings.knob import KnobKind, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlClientSettings:
    """The control listener of a server, and what it is shown."""

    url: str = knob(
        "http://127.0.0.1:8081",
        flag="control-url",
        kind=KnobKind.TEXT,
        help="The server's control listener, for example https://10.0.0.5:8081.",
    )
    token_file: str = knob(
        "",
        flag="bearer-token-file",
        kind=KnobKind.TEXT,
        help="File with the token to show; empty shows none.",
    )
    ca_file: str = knob(
        "",
        flag="control-ca-file",
        kind=KnobKind.TEXT,
        help="Certificate authorities (PEM) of the server; the system's own if empty.",
    )
    cert_file: str = knob(
        "",
        flag="control-client-cert-file",
        kind=KnobKind.TEXT,
        help="Certificate chain (PEM) to show to a server that asks for one.",
    )
    key_file: str = knob(
        "",
        flag="control-client-key-file",
        kind=KnobKind.TEXT,
        help="Private key (PEM) of that certificate.",
    )
    timeout_ns: int = knob(
        10 * NS_PER_S,
        flag="control-timeout",
        kind=KnobKind.DURATION,
        unit="ns",
        minimum=10 * NS_PER_MS,
        help="Longest wait for the whole answer.",
    )
    answer_bytes_max: int = knob(
        256 * 1_048_576,
        flag="control-max-answer-bytes",
        kind=KnobKind.INTEGER,
        unit="bytes",
        minimum=1_024,
        help="Largest answer taken.",
    )

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ConfigError(
                field="control-url", value=self.url, allowed="a URL with http:// or https://"
            )
        if bool(self.cert_file) != bool(self.key_file):
            absent = "control-client-key-file" if self.cert_file else "control-client-cert-file"
            raise ConfigError(
                field=absent, value="", allowed="a file: certificate and key are a pair"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class GetSettings:
    """What ``inferencecache get`` can be told besides what to get."""

    control: ControlClientSettings = field(default_factory=ControlClientSettings)
