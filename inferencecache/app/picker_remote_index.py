"""An index in another server, asked by Picks through LookupRoute.

What it says is not quite what an index in this process says: LookupRoute leaves out what the
tenant's floors take away, names replicas that share a prefix with everybody just as well, says
nothing of replicas that it has no room for, and cannot tell a replica that it has never heard of
from one that holds nothing. So floors have to be 0 for the tenants of the picker, and silence of a
replica means nothing here. Where it says nothing at all, it is asked by GetCacheState whether it
has ever heard of anybody.
"""

from types import MappingProxyType
from typing import Final

import grpc

from inferencecache.app.picker_index_cold import IndexCold
from inferencecache.client import AsyncCacheClient, FailOpenCause, LookupQuery, LookupResult
from inferencecache.clock import NS_PER_MS, Clock
from inferencecache.picker.prefix.index_source import (
    COLD,
    NOTHING_HELD,
    IndexFlaw,
    IndexFound,
    IndexMatch,
    IndexQuestion,
)
from inferencecache.picker.prefix.sightings import Sightings
from inferencecache.settings.client import ClientSettings
from inferencecache.settings.picker_prefix import PickerIndexSettings
from inferencecache.transport.cache_state_client import CacheStateCaller
from inferencecache.transport.client_channel import open_async_channel
from inferencecache.transport.structured_log import EventLog
from inferencecache.types import ReasonCode

_HASH_BYTES: Final = 8

_CODES: Final = MappingProxyType(
    {
        ReasonCode.TIMEOUT: IndexFlaw.TIMEOUT,
        ReasonCode.UNKNOWN_TENANT: IndexFlaw.UNKNOWN_TENANT,
        ReasonCode.UNKNOWN_MODEL: IndexFlaw.UNKNOWN_MODEL,
        ReasonCode.UNKNOWN_HASH_SCHEME: IndexFlaw.UNKNOWN_HASH_SCHEME,
        ReasonCode.POLICY_REQUIRES_CHAIN: IndexFlaw.POLICY_REQUIRES_CHAIN,
    }
)
_CAUSES: Final = MappingProxyType(
    {
        FailOpenCause.DEADLINE: IndexFlaw.TIMEOUT,
        FailOpenCause.UNREACHABLE: IndexFlaw.UNREACHABLE,
        FailOpenCause.REFUSED: IndexFlaw.REFUSED,
    }
)


class RemoteIndex:
    """An :class:`IndexSource` behind gRPC; made on the event loop that it works on.

    Args:
        settings: Where it listens, and how often it is asked whether it has anything.
        credentials: TLS; None means plaintext.
        clock: Monotonic time.
        sightings: Told of each replica that it names.
        log: Told of each key that it does not know, once.

    Attributes:
        hears_replicas: It cannot say who has reported.
    """

    hears_replicas: Final = False

    def __init__(
        self,
        settings: PickerIndexSettings,
        credentials: grpc.ChannelCredentials | None,
        clock: Clock,
        sightings: Sightings,
        log: EventLog,
    ) -> None:
        self._clock = clock
        self._sightings = sightings
        self._client = AsyncCacheClient(
            settings.address,
            credentials=credentials,
            on_warning=lambda warning: log.warning("picker_index_key", reason=str(warning)),
        )
        self._channel = open_async_channel(settings.address, ClientSettings(), credentials)
        self._cold = IndexCold(settings, clock, CacheStateCaller(self._channel))

    async def match(self, question: IndexQuestion) -> IndexFound:
        """Return who holds how much of a prompt."""
        left_ns = question.deadline_ns - self._clock.monotonic_ns()
        result = await self._client.lookup(_query(question), deadline_ms=left_ns / NS_PER_MS)
        flaw = flaw_of(result)
        if flaw is not None:
            return IndexFound(flaw=flaw)
        if result.reason_code is ReasonCode.NO_HINT:
            return COLD if await self._is_cold(question) else NOTHING_HELD
        if result.reason_code is not ReasonCode.PREFIX_MATCH:
            return NOTHING_HELD
        now_ns = self._clock.monotonic_ns()
        for hint in result.hints:
            self._sightings.saw(hint.replica_id, now_ns)
        return IndexFound(
            matches={
                hint.replica_id: IndexMatch(hint.matched_tokens, int(hint.tier))
                for hint in result.hints
            }
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._channel.close()
        await self._cold.settle()
        await self._client.close()

    async def _is_cold(self, question: IndexQuestion) -> bool:
        domain = question.domain
        return await self._cold.is_cold(domain.tenant_id, domain.model_id, question.deadline_ns)


def flaw_of(result: LookupResult) -> IndexFlaw | None:
    """Return why an answer says nothing of who holds a prompt; None if it does."""
    if result.reason_code in _CODES:
        return _CODES[result.reason_code]
    if result.cause is None:
        return None
    return _CAUSES.get(result.cause, IndexFlaw.FAILED)


def _query(question: IndexQuestion) -> LookupQuery:
    domain, packed = question.domain, question.hashes
    hashes = [packed[at : at + _HASH_BYTES] for at in range(0, len(packed), _HASH_BYTES)]
    return LookupQuery(
        tenant_id=domain.tenant_id,
        model_id=domain.model_id,
        hash_scheme=domain.hash_scheme,
        adapter_id=domain.adapter_id,
        block_hashes=hashes,
        block_token_counts=[question.block_tokens] * len(hashes),
    )
