"""Findings: what a check says, under a code that does not change."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Status(StrEnum):
    """How much a finding matters, the worst first."""

    FAIL = "FAIL"
    WARN = "WARN"
    INFO = "INFO"
    OK = "OK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found.

    Attributes:
        code: Stable name, for example ``EC003``.
        status: How much it matters.
        check: The check, for example ``EngineReachability``.
        resource: What it is about, for example an endpoint; may be empty.
        message: What was found and what to do about it.
    """

    code: str
    status: Status
    check: str
    resource: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings.

    Attributes:
        findings: In the order of the checks.
    """

    findings: Sequence[Finding]

    @property
    def counts(self) -> dict[Status, int]:
        """Findings by status, all four."""
        found = Counter(finding.status for finding in self.findings)
        return {status: found[status] for status in Status}

    @property
    def exit_code(self) -> int:
        """2 with any FAIL, otherwise 1 with any WARN, otherwise 0."""
        counts = self.counts
        return 2 if counts[Status.FAIL] else min(1, counts[Status.WARN])


CODES: Final[dict[str, tuple[Status, str]]] = {
    "EC001": (Status.FAIL, "EngineReachability"),
    "EC002": (Status.FAIL, "EngineReachability"),
    "EC003": (Status.FAIL, "EngineReachability"),
    "EC004": (Status.FAIL, "EngineReachability"),
    "EC005": (Status.FAIL, "EngineReachability"),
    "EC006": (Status.FAIL, "EngineReachability"),
    "EC007": (Status.FAIL, "EngineReachability"),
    "EC008": (Status.OK, "EngineReachability"),
    "ER001": (Status.OK, "EngineRanks"),
    "ER002": (Status.FAIL, "EngineRanks"),
    "ER003": (Status.WARN, "EngineRanks"),
    "ER004": (Status.WARN, "EngineRanks"),
    "ET001": (Status.OK, "EngineEvents"),
    "ET002": (Status.FAIL, "EngineEvents"),
    "ET003": (Status.FAIL, "EngineEvents"),
    "ET004": (Status.WARN, "EngineEvents"),
    "ET005": (Status.INFO, "EngineEvents"),
    "EL001": (Status.OK, "EngineLayout"),
    "EL002": (Status.FAIL, "EngineLayout"),
    "EL003": (Status.WARN, "EngineLayout"),
    "EL004": (Status.WARN, "EngineLayout"),
    "EL005": (Status.INFO, "EngineLayout"),
    "EB001": (Status.OK, "EngineBlockSize"),
    "EB002": (Status.FAIL, "EngineBlockSize"),
    "EB003": (Status.INFO, "EngineBlockSize"),
    "EY001": (Status.OK, "EngineReplay"),
    "EY002": (Status.WARN, "EngineReplay"),
    "EY003": (Status.FAIL, "EngineReplay"),
    "EY004": (Status.WARN, "EngineReplay"),
    "EY005": (Status.WARN, "EngineReplay"),
    "EY006": (Status.INFO, "EngineReplay"),
    "EY007": (Status.FAIL, "EngineReplay"),
    "EM001": (Status.OK, "EngineMetrics"),
    "EM002": (Status.FAIL, "EngineMetrics"),
    "EM003": (Status.FAIL, "EngineMetrics"),
    "EM004": (Status.WARN, "EngineMetrics"),
    "EM005": (Status.INFO, "EngineMetrics"),
    "EX001": (Status.OK, "EngineInIndex"),
    "EX002": (Status.FAIL, "EngineInIndex"),
    "EX003": (Status.FAIL, "EngineInIndex"),
    "EX004": (Status.FAIL, "EngineInIndex"),
    "EX005": (Status.INFO, "EngineInIndex"),
    "EX006": (Status.WARN, "EngineInIndex"),
}
"""Every code with its status and check, each in one place."""


def finding(code: str, resource: str, message: str) -> Finding:
    """Return the finding *code* names."""
    status, check = CODES[code]
    return Finding(code=code, status=status, check=check, resource=resource, message=message)
