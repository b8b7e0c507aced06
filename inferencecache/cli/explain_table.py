"""An explanation as people read it: the answer, then a line per candidate."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_GAP: Final = "   "
_HEAD: Final = (
    "RANK",
    "CANDIDATE",
    "TIER",
    "BARRIER",
    "MATCHED",
    "SOURCE",
    "IN-FLIGHT",
    "QUEUED",
    "REQUESTS",
    "WAITING",
    "ESTIMATED",
    "PREDICTED",
    "SCORE",
)


def explanation_text(answer: Mapping[str, Any]) -> str:
    """Return the text, with a newline at its end.

    Args:
        answer: As the control listener gives it.
    """
    lines = [f"outcome      {answer['outcome']}"]
    lines += [
        f"{title:<12} {answer[key]}"
        for title, key in (
            ("destination", "destination"),
            ("model", "targetModel"),
            ("reason", "reason"),
        )
        if answer.get(key)
    ]
    explanation = answer.get("explanation")
    if explanation:
        counted = "counted" if explanation["isCounted"] else "estimated"
        lines.append(f"prompt       {explanation['promptTokens']} tokens, {counted}")
        lines += ["", *_table(list(_rows(explanation["candidates"])))]
        hidden = explanation["candidatesTotal"] - len(explanation["candidates"])
        if hidden > 0:
            lines.append(f"and {hidden} more")
    return "\n".join(lines) + "\n"


def _rows(candidates: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    yield _HEAD
    for found in candidates:
        rank = found["rank"]
        yield (
            str(rank) if rank else "-",
            found["name"],
            found["tier"] or "-",
            found["barrier"],
            f"{found['matchedTokens']}/{found['promptTokens']}",
            found["source"],
            str(found["inFlight"]),
            str(found["queuedTokens"]),
            str(found["requests"]),
            str(found["waiting"]),
            _ms(found["estimatedMs"]),
            _ms(found["predictedMs"]),
            f"{found['score']:.2f}" if rank else "-",
        )


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}ms"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
