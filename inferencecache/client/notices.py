"""What a client tells its host besides results: numbers, and each wrong key once."""

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from inferencecache.transport.client_values import FailOpenCause, LookupQuery
from inferencecache.types import ReasonCode

logger: Final = logging.getLogger("inferencecache.client")


class Metrics(Protocol):
    """Where a client counts. Every label value comes from a closed vocabulary."""

    def lookup_finished(self, reason_code: ReasonCode, duration_ns: int) -> None:
        """Count one lookup and how long the caller waited, in nanoseconds."""
        ...

    def hint_missing(self, cause: FailOpenCause) -> None:
        """Count a lookup that ended without a hint for *cause*."""
        ...

    def configuration_error(self, reason_code: ReasonCode) -> None:
        """Count an answer that says gateway and producers disagree about a key."""
        ...


class NoMetrics:
    """Counts nothing; the default."""

    def lookup_finished(self, reason_code: ReasonCode, duration_ns: int) -> None:
        """Ignore the lookup."""

    def hint_missing(self, cause: FailOpenCause) -> None:
        """Ignore the cause."""

    def configuration_error(self, reason_code: ReasonCode) -> None:
        """Ignore the error."""


_ADVICE: Final = {
    ReasonCode.UNKNOWN_TENANT: "no producer reports under this tenant_id",
    ReasonCode.UNKNOWN_MODEL: "no producer of the tenant reports under this model_id",
    ReasonCode.UNKNOWN_HASH_SCHEME: "producers of the model report under another hash_scheme",
}


class ConfigurationWarning(UserWarning):
    """Gateway and producers disagree about a key, so no lookup under it can find anything.

    Args:
        reason_code: Which key is wrong.
        query: The first query that showed it.
    """

    def __init__(self, reason_code: ReasonCode, query: LookupQuery) -> None:
        self.reason_code = reason_code
        self.tenant_id = query.tenant_id
        self.model_id = query.model_id
        self.hash_scheme = query.hash_scheme
        super().__init__(
            f"{reason_code.value}: {_ADVICE[reason_code]}: tenant_id={query.tenant_id!r}"
            f" model_id={query.model_id!r} hash_scheme={query.hash_scheme!r}"
        )


OnWarning = Callable[[ConfigurationWarning], object]
"""Called at most once per wrong key; :func:`warnings.warn` fits. It must not raise."""


def log_warning(warning: ConfigurationWarning) -> None:
    """Write *warning* to the ``inferencecache.client`` logger; the default."""
    logger.warning("%s", warning)


class WarnOnce:
    """Raise each wrong key once, and stop when too many were raised.

    Model ids may come from a gateway's own callers, so the number of different keys has no bound
    of its own: past *warnings_max* the metric alone goes on.

    Args:
        on_warning: Receives each warning.
        warnings_max: Warnings raised in the life of this object, >= 0.
    """

    def __init__(self, on_warning: OnWarning, warnings_max: int) -> None:
        self._on_warning = on_warning
        self._warnings_max = warnings_max
        self._raised: set[tuple[str, ...]] = set()
        self._lock = threading.Lock()

    def raise_once(self, reason_code: ReasonCode, query: LookupQuery) -> None:
        """Warn about the key of *query* that *reason_code* names, unless that was done."""
        key = _wrong_key(reason_code, query)
        with self._lock:
            if key in self._raised or len(self._raised) >= self._warnings_max:
                return
            self._raised.add(key)
        self._on_warning(ConfigurationWarning(reason_code, query))


def _wrong_key(reason_code: ReasonCode, query: LookupQuery) -> tuple[str, ...]:
    """Return the code with the keys down to the one that is wrong."""
    if reason_code is ReasonCode.UNKNOWN_TENANT:
        return (reason_code, query.tenant_id)
    if reason_code is ReasonCode.UNKNOWN_MODEL:
        return (reason_code, query.tenant_id, query.model_id)
    return (reason_code, query.tenant_id, query.model_id, query.hash_scheme)
