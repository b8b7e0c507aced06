"""Findings as JSON, as a table, and for people."""

import json
from collections.abc import Sequence
from typing import Final

from inferencecache.app.doctor_findings import Diagnosis, Finding, Status

_COLORS: Final = {Status.FAIL: "31", Status.WARN: "33", Status.INFO: "36", Status.OK: "32"}
_HEADINGS: Final = ("STATUS", "CODE", "CHECK", "RESOURCE", "MESSAGE")
_STATUS_WIDTH: Final = 4


def as_json(diagnosis: Diagnosis) -> str:
    """Return one JSON document."""
    counts = diagnosis.counts
    summary = {status.value.lower(): counts[status] for status in reversed(Status)}
    document = {
        "summary": {**summary, "exitCode": diagnosis.exit_code},
        "findings": [_object(finding) for finding in diagnosis.findings],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_table(diagnosis: Diagnosis) -> str:
    """Return one row per finding under padded columns."""
    rows = [_HEADINGS, *(_cells(finding) for finding in diagnosis.findings)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS) - 1)]
    return "".join(_padded(row, widths) + "\n" for row in rows)


def as_text(diagnosis: Diagnosis, title: str, *, is_colored: bool) -> str:
    """Return sections by status, the worst first, and a summary.

    Args:
        diagnosis: What to show.
        title: The first line.
        is_colored: Whether statuses are coloured.
    """
    lines = [title, ""]
    for status in Status:
        found = [finding for finding in diagnosis.findings if finding.status is status]
        if not found:
            continue
        lines.append(_colored(status.value, status, is_colored=is_colored))
        for finding in found:
            label = status.value.ljust(_STATUS_WIDTH)
            shown = _colored(label, status, is_colored=is_colored)
            lines.append(f"  {shown} {finding.code}  {finding.resource}".rstrip())
            lines.append(f"      {finding.message}")
        lines.append("")
    counts = ", ".join(f"{diagnosis.counts[one]} {one.value}" for one in reversed(Status))
    lines.append(f"Summary: {counts}  (exit {diagnosis.exit_code})")
    return "\n".join(lines) + "\n"


def _object(finding: Finding) -> dict[str, str]:
    fields = {
        "code": finding.code,
        "status": finding.status.value,
        "check": finding.check,
        "resource": finding.resource,
        "message": finding.message,
    }
    return {name: value for name, value in fields.items() if name != "resource" or value}


def _cells(finding: Finding) -> tuple[str, ...]:
    message = " ".join(finding.message.split())
    return (finding.status.value, finding.code, finding.check, finding.resource or "-", message)


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    head = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
    return "  ".join([*head, row[-1]]).rstrip()


def _colored(text: str, status: Status, *, is_colored: bool) -> str:
    return f"\x1b[{_COLORS[status]}m{text}\x1b[0m" if is_colored else text
