"""What a demo looks like on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from inferencecache.app.demo_standing import DemoStanding, EngineStanding, ProviderStanding
from inferencecache.cli.demo_view import DemoView, verdict


def standing(
    elapsed_s: float = 1.0,
    differences: int | None = None,
    suppressed_s: dict[str, float] | None = None,
    *,
    is_down: bool = False,
    looks_up: bool = True,
) -> DemoStanding:
    """Return a demo of one engine."""
    engine = EngineStanding(
        name="engine-0",
        layout="vllm-0.10.2",
        is_down=is_down,
        requests=1_234,
        running=256,
        waiting=1_000,
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
        reason_codes={"PREFIX_MATCH": 7} if looks_up else {},
        entries=42,
        lookup_p50_ms=1.0,
        lookup_p99_ms=2.0,
        engines=[engine],
        provider=ProviderStanding(answered=12, refused=3),
        suppressed_s=suppressed_s or {},
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
    for word in (
        "engine-0",
        "256+1,000",
        "in work",
        "made up",
        "cached",
        "messages",
        "behind",
        "restarts",
    ):
        assert word in text


@pytest.mark.parametrize(
    ("now", "state"),
    [
        (standing(), "up"),
        (standing(is_down=True, suppressed_s={"default/engines/engine-0": 4.2}), "down"),
        (standing(suppressed_s={"default/engines/engine-0": 4.2}), "left alone"),
        (standing(suppressed_s={"default/engines/engine-10": 4.2}), "up"),
        (standing(suppressed_s={"provider:default/hosted": 4.2}), "up"),
    ],
)
def test_state_of_an_engine(now: DemoStanding, state: str) -> None:
    """What is down is not only left alone; names are told apart."""
    row = next(line for line in shown(now, is_terminal=False).splitlines() if "256+1,000" in line)

    assert row.startswith("engine-0 ")
    assert f" {state} " in row


def test_who_is_left_alone_is_told() -> None:
    """By name, and for how long; nobody is no line."""
    lonely = shown(standing(suppressed_s={"hosted": 4.25, "engine": 0.0}), is_terminal=False)

    assert "hosted for 4.2 s, engine until a request tries it" in lonely
    assert "left alone" not in shown(standing(), is_terminal=False)
    assert "12 answered, 3 refused" in lonely


def test_lookups_have_times_if_there_were_any() -> None:
    """No time at all is not 0 ms."""
    times = "p50 1.00 ms, p99 2.00 ms"
    assert times in shown(standing(), is_terminal=False)
    assert times not in shown(standing(looks_up=False), is_terminal=False)


def test_news_are_lines_of_their_own() -> None:
    """Brackets in them are no markup."""
    stream = io.StringIO()
    view = DemoView(Console(file=stream, width=80, _environ={}))
    view.told("request for [bold]demo -> engine-0 " + "x" * 100)

    assert stream.getvalue() == "request for [bold]demo -> engine-0 " + "x" * 100 + "\n"


@pytest.mark.parametrize(
    ("differences", "words"),
    [(None, "did not catch up"), (0, "agree about all 42"), (3, "DISAGREE about 3")],
)
def test_verdict(differences: int | None, words: str) -> None:
    """The last line says whether the index is right."""
    assert words in verdict(standing(differences=differences))
