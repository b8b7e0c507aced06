"""What a demo looks like on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from inferencecache.app.demo_standing import DemoStanding, EngineStanding
from inferencecache.cli.demo_view import DemoView, verdict


def standing(elapsed_s: float = 1.0, differences: int | None = None) -> DemoStanding:
    """Return a demo of one engine."""
    engine = EngineStanding(
        name="engine-0",
        layout="vllm-0.10.2",
        requests=1_234,
        hit_ratio=0.5,
        usage_ratio=1.0,
        messages=99_999,
        behind=3,
        restarts=1,
    )
    return DemoStanding(
        elapsed_s=elapsed_s,
        requests=1_234,
        hit_ratio=0.6,
        round_robin_hit_ratio=0.3,
        reason_codes={"PREFIX_MATCH": 7},
        entries=42,
        lookup_p50_ms=1.0,
        lookup_p99_ms=2.0,
        engines=[engine],
        differences=differences,
    )


def shown(*standings: DemoStanding, is_terminal: bool) -> str:
    """Return what is written for *standings* and the end."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=is_terminal, width=80, _environ={})
    view = DemoView(console)
    with view:
        for one in standings:
            view.played(one)
    view.ended(standings[-1])
    return stream.getvalue()


def test_terminal_gets_a_picture_that_moves() -> None:
    """The table is redrawn in place."""
    text = shown(standing(), standing(2.0, 0), is_terminal=True)

    assert "\x1b[" in text
    assert "99,999" in text


def test_plain_lines_come_once_a_second() -> None:
    """A log file is not flooded."""
    moments = (0.0, 0.3, 0.6, 1.1, 1.2, 2.2)
    text = shown(*(standing(moment) for moment in moments), is_terminal=False)

    assert text.count("index 42 entries") == 3
    assert "\x1b" not in text


def test_nothing_is_cut_at_eighty_columns() -> None:
    """Every heading and number is whole."""
    text = shown(standing(), is_terminal=False)

    assert "…" not in text
    for word in ("requests", "cached", "messages", "behind", "restarts", "vllm-0.10.2"):
        assert word in text


@pytest.mark.parametrize(
    ("differences", "words"),
    [(None, "did not catch up"), (0, "agree about all 42"), (3, "DISAGREE about 3")],
)
def test_verdict(differences: int | None, words: str) -> None:
    """The last line says whether the index is right."""
    assert words in verdict(standing(differences=differences))
