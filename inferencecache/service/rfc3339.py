"""Times as RFC 3339 text, for any time at all."""

from datetime import UTC, datetime, timedelta
from typing import Final

from inferencecache.clock import NS_PER_S

ZERO_TIME: Final = "0001-01-01T00:00:00Z"
"""What "never" is written as."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_NS: Final = int((datetime(1, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) * NS_PER_S
_LAST_NS: Final = (
    int((datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC) - _EPOCH).total_seconds()) + 1
) * NS_PER_S - 1


def rfc3339(time_ns: int | None) -> str:
    """Return *time_ns* in UTC with as many decimals as it needs.

    >>> rfc3339(1_500_000_000), rfc3339(None)
    ('1970-01-01T00:00:01.5Z', '0001-01-01T00:00:00Z')

    Args:
        time_ns: Unix time, nanoseconds; clamped to the years 1 to 9999. None means never.
    """
    if time_ns is None:
        return ZERO_TIME
    seconds, nanoseconds = divmod(min(max(time_ns, _FIRST_NS), _LAST_NS), NS_PER_S)
    text = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{text}{fraction}Z"
