"""How long a request can wait."""

from enum import StrEnum


class QosClass(StrEnum):
    """How long a request can wait; the names are the wire's."""

    INTERACTIVE = "INTERACTIVE"
    BATCH = "BATCH"
    DEFERRABLE = "DEFERRABLE"
