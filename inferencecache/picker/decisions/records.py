"""The last Picks and how they came about, for people who wonder.

A record has names and numbers, and nothing of a prompt; ids by which a request could be ended are
not in it either.
"""

from collections import deque

import msgspec

from inferencecache.picker.explanation import Explanation


class DecisionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One Pick.

    Attributes:
        request_id: The caller's name for the request, shortened.
        at_ns: Unix time of the answer.
        duration_ns: How long it took.
        tenant: Whose request it is.
        qos: How long it can wait.
        outcome: What came out.
        reason: What the caller was told.
        requested_model: The model as the body names it.
        target_model: What the body names now; empty without a destination.
        destination: Where it goes; empty without one.
        explanation: How it came about; None where it never came to candidates.
    """

    request_id: str
    at_ns: int
    duration_ns: int
    tenant: str
    qos: str
    outcome: str
    reason: str
    requested_model: str
    target_model: str
    destination: str
    explanation: Explanation | None


class DecisionRecords:
    """A ring of records.

    Args:
        records_max: How many are kept; 0 keeps none.
    """

    def __init__(self, records_max: int) -> None:
        self._records: deque[DecisionRecord] = deque(maxlen=records_max)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def is_kept(self) -> bool:
        """Whether there is room for any."""
        return self._records.maxlen != 0

    def add(self, record: DecisionRecord) -> None:
        """Keep *record* in the place of the oldest one."""
        self._records.append(record)

    def find(self, request_id: str, most: int) -> list[DecisionRecord]:
        """Return the newest records, at most *most*, of *request_id* or of all if it is empty.

        Complexity: O(records).
        """
        found: list[DecisionRecord] = []
        for record in reversed(self._records):
            if len(found) >= most:
                break
            if not request_id or record.request_id == request_id:
                found.append(record)
        return found
