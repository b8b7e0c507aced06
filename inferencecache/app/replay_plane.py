"""The simulated fleet's side of the wire: its gateway's lookups and its engines' reports.

Rules of this file: an answer is a value as long as the server gives one; a server that gives none
ends the replay, because numbers from a gateway that quietly fell back would mean nothing.
"""

from typing import Final

from inferencecache.app.reach import NO_ANSWER, reach
from inferencecache.client import (
    AsyncCacheClient,
    CacheUpdate,
    DeliveryError,
    HeldPrefix,
    LookupQuery,
    ReplicaRef,
)
from inferencecache.clock import Clock
from inferencecache.errors import InferenceCacheError
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.replay import ReplaySettings
from inferencecache.simulation import (
    TRACE_BLOCK_TOKENS,
    Answer,
    CacheOutcome,
    Prompt,
    Served,
)

HASH_SCHEME: Final = "mooncake-512"


class ServerLostError(InferenceCacheError):
    """The server of a replay answered at first, and does not any more.

    Args:
        detail: One line with address and cause.
    """


class ReplayPlane:
    """Speaks to one server for all simulated replicas.

    Args:
        target: gRPC target of the server.
        settings: Names on the wire, deadline and number of replicas.
        clock: Measures lookups.

    Attributes:
        target: As given.
        replica_ids: The replicas' names, by number.
    """

    def __init__(self, target: str, settings: ReplaySettings, clock: Clock) -> None:
        self.target = target
        self._settings = settings
        self._clock = clock
        self.replica_ids: list[str] = [f"replica-{n}" for n in range(settings.replicas)]
        self._number_of = {replica_id: n for n, replica_id in enumerate(self.replica_ids)}
        client_settings = ClientSettings(
            lookup_deadline_ns=settings.deadline_ns,
            delivery_timeout_ns=settings.deadline_ns,
            events_in_flight_max=settings.evictions_in_flight_max,
        )
        self._client = AsyncCacheClient(
            target, settings=client_settings, on_warning=_expect_unknown_keys
        )
        self._reporter = self._client.reporter()

    async def reach(self) -> None:
        """Return once the server answers.

        Raises:
            ServerAbsentError: It did not in the time that the settings give it.
        """
        await reach(self._client, self.target, self._settings.connect_timeout_ns)

    async def start(self) -> None:
        """Tell the server that every replica is empty.

        Raises:
            ServerLostError: The server does not answer.
        """
        try:
            for replica in range(len(self.replica_ids)):
                await self._reporter.clear(self._reference(replica))
        except DeliveryError as error:
            raise ServerLostError(str(error)) from error

    async def look_up(self, prompt: Prompt) -> Answer:
        """Ask where *prompt* is warm.

        Raises:
            ServerLostError: The server does not answer.
        """
        query = LookupQuery(
            tenant_id=self._settings.tenant_id,
            model_id=self._settings.model_id,
            hash_scheme=HASH_SCHEME,
            block_hashes=prompt.block_hashes,
            block_token_counts=prompt.block_token_counts,
        )
        started_ns = self._clock.monotonic_ns()
        result = await self._client.lookup(query, eligible=self._number_of)
        latency_ns = self._clock.monotonic_ns() - started_ns
        if result.cause in NO_ANSWER:
            raise ServerLostError(
                f"cache server at {self.target} did not answer a lookup: {result.detail}"
            )
        return Answer(
            reason_code=result.reason_code.value,
            hinted_tokens={
                self._number_of[hint.replica_id]: hint.matched_tokens for hint in result.hints
            },
            latency_ns=latency_ns,
        )

    async def report(self, served: Served) -> None:
        """Report what serving a prompt changed; on return the server has applied it.

        Evictions go first, as in an engine that makes room before it stores.

        Raises:
            ServerLostError: The server does not acknowledge.
        """
        replica, outcome = self._reference(served.replica), served.outcome
        try:
            if outcome.evicted:
                await self._reporter.evict(replica, outcome.evicted)
            if outcome.stored:
                await self._reporter.report(
                    CacheUpdate(
                        replica=replica, hash_scheme=HASH_SCHEME, prefixes=[stored_suffix(outcome)]
                    )
                )
                await self._reporter.flush()
        except DeliveryError as error:
            raise ServerLostError(str(error)) from error

    async def close(self) -> None:
        """Close the connection."""
        self._reporter.close()
        await self._client.close()

    def _reference(self, replica: int) -> ReplicaRef:
        """Return the wire's name of a replica."""
        return ReplicaRef(
            self._settings.tenant_id, self._settings.model_id, self.replica_ids[replica]
        )


def stored_suffix(outcome: CacheOutcome) -> HeldPrefix:
    """Return the chain entry for the blocks that *outcome* stored.

    Counts are per block and the server sums them up, so the first count of a suffix also carries
    the tokens of the blocks before it: what is kept per block is its depth in the prompt.

    Args:
        outcome: An outcome with stored blocks.
    """
    counts = [TRACE_BLOCK_TOKENS] * len(outcome.stored)
    counts[0] += outcome.hit_blocks * TRACE_BLOCK_TOKENS
    return HeldPrefix(block_hashes=outcome.stored, block_token_counts=counts)


def _expect_unknown_keys(_warning: object) -> None:
    """Ignore the warning: until the first report the server cannot know the replay's keys."""
