"""What a lookup gives a gateway, the same over gRPC and in process."""

from collections.abc import Container
from dataclasses import dataclass

from inferencecache.transport.client_values import FailOpenCause, ReplicaHint
from inferencecache.types import ReasonCode


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupResult:
    """A hint, or the reason for none. There are hints exactly for the three codes that carry them.

    Attributes:
        reason_code: The code to act on; always one this version knows.
        raw_reason_code: The code as the server sent it; empty when the client made the result.
        hints: Usable replicas, best first.
        adapter_id: The adapter partition the server consulted, as echoed.
        token_ids: Tokens the server made of *prompt_text*; send exactly these to the engine.
        server_latency_us: Microseconds the server took; 0 when it did not answer.
        cause: Why there is no hint, when the server's honest answer is not the reason.
        detail: One line for people about *cause*.
    """

    reason_code: ReasonCode
    raw_reason_code: str = ""
    hints: tuple[ReplicaHint, ...] = ()
    adapter_id: str = ""
    token_ids: tuple[int, ...] = ()
    server_latency_us: int = 0
    cause: FailOpenCause | None = None
    detail: str = ""

    @property
    def has_hint(self) -> bool:
        """Tell whether there is a replica to prefer."""
        return bool(self.hints)

    @property
    def is_soft(self) -> bool:
        """Tell whether the hint is weaker than a match: follow it only when load allows."""
        return self.reason_code is ReasonCode.TENANT_HOT

    def best(self, eligible: Container[str] | None = None) -> ReplicaHint | None:
        """Return the best replica, or None to route by the gateway's own policy.

        Args:
            eligible: Replicas the caller can use now; None accepts every one.
        """
        for hint in self.hints:
            if eligible is None or hint.replica_id in eligible:
                return hint
        return None
