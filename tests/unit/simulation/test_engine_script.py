"""Scripts become steps, and steps become messages."""

import pytest

from inferencecache.errors import ConfigError
from inferencecache.simulation import (
    LAYOUTS,
    EnginePlayer,
    LifeRules,
    StreamRules,
    TrafficRules,
    layout_of,
    parse_script,
    plan_of,
    render_page,
    traffic,
)

LAYOUT = LAYOUTS["vllm-0.24"]


def player(ranks: int = 1, **rules: object) -> EnginePlayer:
    """Return an engine without blocks."""
    fields = {"layout": LAYOUT, "hash_form": LAYOUT.hash_form, **rules}
    return EnginePlayer(LifeRules(), StreamRules(**fields), ranks)  # type: ignore[arg-type]


def numbers(engine: EnginePlayer, script: str) -> list[int]:
    """Return the numbers of the messages that a script sends."""
    emissions = [engine.play(step, 1.0) for step in parse_script(script, "script")]
    return [emission.message.number for emission in emissions if emission.message is not None]


def replayed(engine: EnginePlayer, start: int = 0) -> list[int]:
    """Return the numbers in a replay, the end mark included."""
    answer = engine.streams[0].replay([b"", start.to_bytes(8, "big")])
    return [int.from_bytes(frames[-2], "big") for frames in answer]


def test_numbers_skipped_lost_and_sent_twice() -> None:
    """A skipped number is nowhere, a lost message is in the replay alone."""
    engine = player()
    script = """
    - {do: serve, start: 0, count: 16}
    - {do: skip, count: 2}
    - {do: serve, start: 100, count: 16}
    - {do: duplicate}
    - {do: serve, start: 200, count: 16, lost: true}
    - {do: serve, start: 300, count: 16}
    """

    assert numbers(engine, script) == [0, 3, 3, 5]
    assert replayed(engine) == [0, 3, 4, 5, 2**64 - 1]
    assert replayed(engine, 4) == [4, 5, 2**64 - 1]
    assert len(engine.expected()) == 4


def test_restart_counts_from_zero() -> None:
    """The next life has an empty ring and an empty cache."""
    engine = player()
    script = """
    - {do: serve, start: 0, count: 64}
    - {do: restart}
    - {do: serve, start: 100, count: 16}
    """

    assert numbers(engine, script) == [0, 0]
    assert replayed(engine) == [0, 2**64 - 1]
    assert len(engine.expected()) == 1


def test_steps_about_held_blocks() -> None:
    """Copies, moves and removals of what is held each take a number; of nothing, none."""
    script = """
    - {do: serve, start: 0, count: 64}
    - {do: copy, start: 0, count: 16}
    - {do: offload, start: 0, count: 32}
    - {do: remove, start: 0, count: 64, first_block: 3}
    - {do: evict}
    - {do: copy, start: 900, count: 16}
    - {do: remove, start: 900, count: 16}
    """

    assert numbers(player(), script) == [0, 1, 2, 3, 4]


def test_frames_of_a_message() -> None:
    """A message is topic, number and payload."""
    engine = player()
    (step,) = parse_script("[{do: serve, count: 16}]", "script")
    message = engine.play(step, 1.0).message
    assert message is not None

    assert message.frames("kv") == [b"kv", bytes(8), message.payload]
    assert engine.streams[0].next_number == 1


def test_restart_breaks_connections() -> None:
    """Nothing else does."""
    steps = parse_script("[{do: serve, count: 16}, {do: restart}, {do: skip}]", "script")
    engine = player()

    assert [engine.play(step, 1.0).is_restart for step in steps] == [False, True, False]


def test_json_lines() -> None:
    """One object per line is a script too."""
    script = '{"do": "serve", "count": 16}\n\n{"do": "wait", "ms": 5}\n{"do": "clear"}\n'
    engine = player()

    assert numbers(engine, script) == [0, 1]
    assert engine.play(parse_script(script, "script")[1], 1.0).wait_ms == 5


def test_what_an_engine_does_not_announce() -> None:
    """A hit takes no number."""
    assert numbers(player(), "[{do: serve, count: 16}, {do: serve, count: 16}, {do: evict}]") == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "at least one step"),
        ("[]", "at least one step"),
        ("{do: serve}", "JSON"),
        ("serve", "a list"),
        ("- {do: dance}", "step 1"),
        ("- {do: clear}\n- {do: serve, cuont: 3}", "step 2"),
        ("- {do: serve, count: -1}", "step 1"),
        ("- {do: serve, count: true}", "step 1"),
        ("- {do: serve, start: 4294967295, count: 2}", "below 2"),
        ("- {do: serve, rank: 1}", "below 1"),
        ("- {do: serve", "YAML"),
        ('{"do": "clear"}\n{', "JSON"),
    ],
)
def test_wrong_scripts(script: str, words: str) -> None:
    """The error says which step is wrong."""
    with pytest.raises(ConfigError, match=words):
        parse_script(script, "script")


def test_shapes_of_a_replay() -> None:
    """Newer releases put the topic in front, also before the end mark."""
    new = LAYOUTS["vllm-0.26"]
    old_engine, new_engine = player(topic="t"), player(topic="t", layout=new)
    for engine in (old_engine, new_engine):
        numbers(engine, "[{do: serve, count: 16}]")
    request = [b"", bytes(8)]
    first, end = list(old_engine.streams[0].replay(request))
    assert (first[:2], end) == ([b"", bytes(8)], [b"", b"\xff" * 8, b""])
    first, end = list(new_engine.streams[0].replay(request))
    assert (first[:3], end) == ([b"", b"t", bytes(8)], [b"", b"", b"\xff" * 8, b""])
    assert list(new_engine.streams[0].replay([bytes(8)])) == []


def test_replay_without_end_mark_and_with_a_short_ring() -> None:
    """A ring keeps the last messages; a slow reader may never see the end."""
    engine = player(ring_batches=2, has_end_mark=False)
    numbers(engine, "[{do: serve, count: 16}, {do: clear}, {do: clear}]")

    assert replayed(engine) == [1, 2]


def test_ranks_share_keys() -> None:
    """A key that two ranks hold is expected once."""
    engine = player(ranks=2)
    for step in parse_script(
        "[{do: serve, count: 16}, {do: serve, count: 32, rank: 1}]", "script", ranks=2
    ):
        engine.play(step, 1.0)

    assert [key.token_count for key in engine.expected()] == [16, 32]


def test_traffic_repeats_with_its_seed() -> None:
    """Equal seeds give equal prompts, and families share their start."""
    rules = TrafficRules(families=2, ranks=2)
    again = [step for step, _ in zip(traffic(rules), range(20), strict=False)]

    assert again == [step for step, _ in zip(traffic(rules), range(20), strict=False)]
    assert {step.start for step in again} == {2**31, 2**31 + 128}
    assert [step.rank for step in again[:4]] == [0, 1, 0, 1]
    assert traffic(TrafficRules(seed=1)).__next__() != again[0]


@pytest.mark.parametrize(
    ("release", "row"),
    [
        ("vllm-0.25.1", "vllm-0.24"),
        ("vllm-0.9.2", "vllm-0.9.1"),
        ("vllm-0.40", "vllm-0.33"),
        ("sglang-0.5.6", "sglang-0.4.7"),
        ("sglang-0.5.21", "sglang-0.5.20"),
    ],
)
def test_release_uses_the_newest_form_before_it(release: str, row: str) -> None:
    """Only changes of the form have a row."""
    assert layout_of(release).name == row


@pytest.mark.parametrize("release", ["", "vllm", "vllm-", "vllm-new", "trt-1.0", "vllm-0.8.5"])
def test_unknown_releases(release: str) -> None:
    """The error lists the forms there are."""
    with pytest.raises(ConfigError, match=r"vllm-0\.33"):
        layout_of(release)


@pytest.mark.parametrize(
    ("release", "config", "is_publishing", "is_binding"),
    [
        ("vllm-0.33", '{"enable_kv_cache_events": true}', True, True),
        ("vllm-0.33", '{"publisher": "zmq"}', False, True),
        ("vllm-0.10.2", '{"enable_kv_cache_events": true}', False, True),
        ("vllm-0.33", '{"enable_kv_cache_events": true, "publisher": "null"}', False, True),
        (
            "vllm-0.33",
            '{"enable_kv_cache_events": true, "endpoint": "tcp://0.0.0.0:5557"}',
            True,
            False,
        ),
        ("sglang-0.5.22", '{"publisher": "zmq", "endpoint": "tcp://0.0.0.0:5557"}', True, True),
        ("sglang-0.5.9", '{"publisher": "zmq", "endpoint": "tcp://0.0.0.0:5557"}', True, False),
        ("sglang-0.5.22", '{"publisher": "zmq", "bind": false}', True, False),
        ("sglang-0.5.22", "{}", False, True),
    ],
)
def test_configurations_are_read_as_engines_do(
    release: str, config: str, *, is_publishing: bool, is_binding: bool
) -> None:
    """Defaults and the rule for binding differ from engine to engine."""
    plan = plan_of(config, layout_of(release))

    assert (plan.is_publishing, plan.is_binding) == (is_publishing, is_binding)


@pytest.mark.parametrize("config", ["", "[]", '{"endpont": "x"}', '{"buffer_steps": "many"}'])
def test_configurations_that_no_engine_takes(config: str) -> None:
    """A misspelt field is an error, as in the engine."""
    with pytest.raises(ConfigError, match="--kv-events-config"):
        plan_of(config, LAYOUT)


def test_metric_names_follow_the_release() -> None:
    """Old and new vLLM and SGLang name their gauges differently."""
    gauges = player().gauges()
    pages = {name: render_page(LAYOUTS[name], gauges, "m") for name in LAYOUTS}

    assert b"vllm:gpu_cache_usage_perc" in pages["vllm-0.9.1"]
    assert b"vllm:kv_cache_usage_perc" in pages["vllm-0.33"]
    assert b"sglang:token_usage" in pages["sglang-0.5.22"]
