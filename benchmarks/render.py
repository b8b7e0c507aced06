"""The table as text, Markdown and JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.row import Row, number

Results = Mapping[str, Sequence[Row]]

HEAD = ("what", "target", "measured", "at the targets' speed", "naive", "peer", "verdict", "note")


def cells(row: Row, slowness: float) -> tuple[str, ...]:
    """Return the text of each column.

    Args:
        row: The row.
        slowness: Times this machine is slower than the one the targets were set on.
    """
    measured = f"{number(row.value)} {row.unit}" if row.value is not None else "-"
    return (
        row.what,
        row.target_text,
        measured,
        row.scaled_text(slowness),
        number(row.naive),
        number(row.peer),
        row.verdict.value,
        row.note,
    )


def as_text(rows: Iterable[Row], slowness: float) -> str:
    """Return aligned lines for a terminal."""
    lines = []
    for row in rows:
        what, target, measured, scaled, naive, peer, verdict, note = cells(row, slowness)
        lines.append(f"  {what:<58} {measured:>17}  {verdict:<8} target {target}")
        extra = [
            f"at the targets' speed {scaled}" if scaled != "-" else "",
            f"naive {naive} {row.unit}" if row.naive is not None else "",
            f"peer {peer} {row.unit}" if row.peer is not None else "",
            note,
        ]
        if any(extra):
            lines.append("      " + "; ".join(filter(None, extra)))
    return "\n".join(lines)


def as_markdown(results: Results, machine: Mapping[str, str], command: str, slowness: float) -> str:
    """Return the results page."""
    lines = [
        "# Benchmarks",
        "",
        "This page is written by the command below; numbers are never edited by hand.",
        "`benchmarks/README.md` says what each workload is and how it is timed.",
        "",
        "Verdicts compare what was measured here with the target as it stands. Targets were set",
        f"on a machine {slowness:.1f} times as fast by the yardstick below; one column says what",
        "the measurement comes to at that speed. Ratios and bytes need no scaling.",
        "",
        "```",
        command,
        "```",
        "",
        "| machine | |",
        "|---|---|",
        *(f"| {name} | {value} |" for name, value in machine.items()),
        "",
    ]
    for group, rows in results.items():
        lines += [f"## {group}", "", _line(HEAD), _line("---" for _ in HEAD)]
        lines += [_line(cells(row, slowness)) for row in rows]
        lines.append("")
    return "\n".join(lines)


def _line(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def as_json(results: Results, machine: Mapping[str, str], command: str) -> str:
    """Return everything for another program to read."""
    groups = {group: [row.fields() for row in rows] for group, rows in results.items()}
    document = {"machine": dict(machine), "command": command, "groups": groups}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
