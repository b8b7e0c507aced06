"""The table as text, Markdown and JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.row import Row, number

Results = Mapping[str, Sequence[Row]]

HEAD = ("what", "target", "measured", "naive", "peer", "verdict", "note")


def cells(row: Row) -> tuple[str, ...]:
    """Return the text of each column."""
    measured = f"{number(row.value)} {row.unit}" if row.value is not None else "-"
    return (
        row.what,
        row.target_text,
        measured,
        number(row.naive),
        number(row.peer),
        row.verdict.value,
        row.note,
    )


def as_text(rows: Iterable[Row]) -> str:
    """Return aligned lines for a terminal."""
    lines = []
    for row in rows:
        what, target, measured, naive, peer, verdict, note = cells(row)
        lines.append(f"  {what:<58} {measured:>17}  {verdict:<8} target {target}")
        extra = [
            f"naive {naive} {row.unit}" if row.naive is not None else "",
            f"peer {peer} {row.unit}" if row.peer is not None else "",
            note,
        ]
        if any(extra):
            lines.append("      " + "; ".join(filter(None, extra)))
    return "\n".join(lines)


def as_markdown(results: Results, machine: Mapping[str, str], command: str) -> str:
    """Return the results page."""
    lines = [
        "# Benchmarks",
        "",
        "This page is written by the command below; numbers are never edited by hand.",
        "`benchmarks/README.md` says what each workload is and how it is timed.",
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
        lines += [_line(cells(row)) for row in rows]
        lines.append("")
    return "\n".join(lines)


def _line(texts: Iterable[str]) -> str:
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def as_json(results: Results, machine: Mapping[str, str], command: str) -> str:
    """Return everything for another program to read."""
    groups = {group: [row.fields() for row in rows] for group, rows in results.items()}
    document = {"machine": dict(machine), "command": command, "groups": groups}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
