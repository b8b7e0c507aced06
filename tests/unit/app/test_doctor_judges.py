"""What the doctor makes of payloads, ports, replays and pages that no fake engine produces."""

import pytest
from engine_payloads import (
    HASH_A,
    T16,
    array_remove,
    array_store,
    batch,
    layouts,
    map_store,
    old_batch,
)
from metrics_page import page
from msgpack_bytes import array, integer, integers, mapping, text

from inferencecache.app.doctor_findings import CODES, Diagnosis, Finding, Status, finding
from inferencecache.app.doctor_layout import has_store, shape_of
from inferencecache.app.doctor_reach import judge_engine_port, judge_replay_port
from inferencecache.app.doctor_signals import judge_page, judge_replay, traffic_between
from inferencecache.app.doctor_stream import judge_layout
from inferencecache.cli.doctor_output import as_json, as_table, as_text
from inferencecache.events.engine_metrics import Sample
from inferencecache.settings.doctor import DoctorSettings
from inferencecache.settings.producer import DecodeSettings
from inferencecache.transport.doctor_ear import Past
from inferencecache.transport.doctor_page import Page
from inferencecache.transport.doctor_port import Port, PortState

LIMITS = DecodeSettings()
SETTINGS = DoctorSettings(engine_endpoint="tcp://e:1", metrics_url="http://e:2/metrics")


def codes_of(*payloads: bytes, **settings: object) -> dict[str, str]:
    """Return the layout's findings about *payloads*."""
    shape = shape_of(payloads, LIMITS, has_topic=False)
    judged = judge_layout(shape, DoctorSettings(**settings))  # type: ignore[arg-type]
    return {one.code: one.message for one in judged}


GUESSES = {
    "vllm-0.9.0 array 6": "vLLM 0.9.0 or SGLang 0.4.6",
    "vllm-0.9.1 array 6": "vLLM 0.9.0 to 0.10.1 or SGLang 0.4.6 to 0.5.8",
    "vllm-0.10.2 array 7": "vLLM 0.10.2 to 0.13",
    "vllm-0.14 array 8": "vLLM 0.14 to 0.16",
    "vllm-0.17 array 9": "vLLM 0.17 to 0.19",
    "vllm-0.20 array 10": "vLLM 0.20 or 0.21",
    "vllm-0.22 array 12": "vLLM 0.22 or 0.23",
    "array header dc": "vLLM 0.22 or 0.23",
    "vllm-0.24 map 8x": "vLLM 0.24 or later",
    "vllm-0.26 map": "vLLM 0.26 or later",
    "vllm-0.33 map de": "vLLM 0.33 or later",
    "sglang-0.5.18 array 8, empty map": "SGLang 0.5.18 or 0.5.19",
    "sglang-0.5.20 map": "SGLang 0.5.20 or later",
}


@pytest.mark.parametrize("name", GUESSES)
def test_releases_are_told_by_their_layout(name: str) -> None:
    """Every documented layout points at the releases that have it."""
    assert GUESSES[name] in codes_of(layouts()[name])["EL001"]


@pytest.mark.parametrize(
    ("key", "release"), [("session_id", "0.30"), ("ownership", "0.29"), ("locality", "0.26")]
)
def test_maps_are_told_by_their_newest_key(key: str, release: str) -> None:
    """A key that only newer releases write settles the question."""
    payload = batch(map_store([HASH_A], T16, **{key: text("LOCAL")}))

    assert f"vLLM {release} or later" in codes_of(payload)["EL001"]


def test_topic_in_a_replay_tells_newer_maps() -> None:
    """Two releases with the same events differ in their replay."""
    shape = shape_of([layouts()["vllm-0.24 map 8x"]], LIMITS, has_topic=True)

    assert shape.forms == {"maps: vLLM 0.26 or later"}


@pytest.mark.parametrize("payload", [b"", b"\xc0", b"hello", mapping({"load": integer(1)})])
def test_another_publisher(payload: bytes) -> None:
    """What is no batch at all fails, whatever it is."""
    assert set(codes_of(payload)) == {"EL002"}
    assert not has_store(payload, LIMITS)


def test_some_events_cannot_be_used() -> None:
    """Faults are named by cause, and the rest still counts."""
    pairs = array([integers([1, 2])] * 16)
    bigram = batch(map_store([HASH_A], T16), map_store([HASH_A], T16, token_ids=pairs))
    found = codes_of(bigram, b"\xc1")

    assert "bigram_tokens 1" in found["EL003"]
    assert "unreadable batches 1" in found["EL003"]
    assert "EL001" in found


def test_no_store_seen() -> None:
    """Removals alone do not show the layout."""
    found = codes_of(batch(array_remove([HASH_A])))

    assert set(found) == {"EL005"}
    assert not has_store(batch(array_remove([HASH_A])), LIMITS)


def test_oldest_sglang_is_recognised_by_its_roots() -> None:
    """Its prompts start below a parent that nobody ever announced."""
    root = old_batch(array_store(6, [HASH_A], T16, parent=5740354900026072187))

    assert "SGLang 0.4" in codes_of(root, hash_scheme="sglang")["EL004"]


def test_port_states_have_codes() -> None:
    """Every way a port can be wrong is its own finding."""
    judged = {
        state: judge_engine_port(Port(endpoint="tcp://e:1", state=state, detail="?"))
        for state in PortState
    }

    assert all(one.status is Status.FAIL for one in judged.values())
    assert judged[PortState.TIMED_OUT].code == judged[PortState.UNREACHABLE].code == "EC004"
    assert judge_replay_port(Port(endpoint="e", state=PortState.ZMQ, detail="ROUTER")) is None
    replay = judge_replay_port(Port(endpoint="e", state=PortState.REFUSED))
    assert replay is not None
    assert replay.code == "EY003"
    assert "replay_endpoint" in replay.message


def test_replay_that_never_answers() -> None:
    """A ROUTER that says nothing is no replay."""
    assert [one.code for one in judge_replay(Past(), "e")] == ["EY003"]


@pytest.mark.parametrize(
    ("name", "scheme", "code"),
    [
        ("vllm_v1_idle_head40.txt", "vllm", "EM001"),
        ("vllm_v1_idle_head40.txt", "sglang", "EM003"),
        ("sglang_llama31_8b_overloaded.txt", "sglang", "EM001"),
        ("sglang_llama31_8b_overloaded.txt", "vllm", "EM003"),
        ("vllm_v0100_both_names_excerpt.txt", "vllm", "EM004"),
    ],
)
def test_pages_from_the_field(name: str, scheme: str, code: str) -> None:
    """Old and new names, a cut page, and pages of the other engine."""
    settings = DoctorSettings(metrics_url="http://e:2", hash_scheme=scheme)

    assert judge_page(Page(samples=page(name)), settings).code == code


def test_sglang_without_metrics() -> None:
    """An empty page names the switch that is missing."""
    settings = DoctorSettings(metrics_url="http://e:2", hash_scheme="sglang")

    assert "--enable-metrics" in judge_page(Page(), settings).message


def test_traffic_is_what_counters_grew_by() -> None:
    """A page that is missing, broken or without counters tells nothing."""
    before, after = (
        Page(samples=[Sample(name="vllm:prompt_tokens_total", value=value)])
        for value in (10.0, 25.0)
    )

    assert traffic_between(before, after).served_tokens == 15
    assert traffic_between(after, before).served_tokens == 0
    assert not traffic_between(before, Page(error="x")).is_known
    assert not traffic_between(None, after).is_known
    assert not traffic_between(before, Page()).is_known


FOUND = Diagnosis(
    findings=[
        finding("EC008", "tcp://e:1", "fine"),
        finding("EY002", "", "late\nstart"),
        finding("ET003", "tcp://e:1", "silent"),
    ]
)


def test_exit_code_is_the_worst() -> None:
    """FAIL is 2, WARN is 1, INFO and OK are 0."""

    def exit_code(*codes: str) -> int:
        return Diagnosis(findings=[finding(code, "", "") for code in codes]).exit_code

    assert [exit_code(), exit_code("EC008", "EY006"), exit_code("EY002"), exit_code("EC003")] == [
        0,
        0,
        1,
        2,
    ]
    assert FOUND.exit_code == 2


def test_json_leaves_an_empty_resource_out() -> None:
    """The form is fixed: summary first, two spaces of indentation, a list that may be empty."""
    assert as_json(Diagnosis(findings=[])).startswith('{\n  "summary": {\n    "ok": 0,')
    assert '"findings": []' in as_json(Diagnosis(findings=[]))
    assert as_json(FOUND).count('"resource"') == 2


def test_table_has_one_line_per_finding() -> None:
    """Columns are padded by two spaces, and messages stay on their line."""
    lines = as_table(FOUND).splitlines()

    assert lines[0].split() == ["STATUS", "CODE", "CHECK", "RESOURCE", "MESSAGE"]
    assert lines[2] == "WARN    EY002  EngineReplay        -          late start"


def test_text_begins_with_the_worst() -> None:
    """Sections without findings are left out, and colour is for terminals."""
    plain = as_text(FOUND, "title", is_colored=False)

    assert plain.startswith("title\n\nFAIL\n  FAIL ET003  tcp://e:1\n      silent\n\nWARN\n")
    assert "INFO\n" not in plain
    assert plain.endswith("Summary: 1 OK, 0 INFO, 1 WARN, 1 FAIL  (exit 2)\n")
    assert "\x1b[31mFAIL\x1b[0m" in as_text(FOUND, "title", is_colored=True)


def test_codes_say_their_check() -> None:
    """Codes of one check share their letters."""
    checks = {(code[:2], check) for code, (_, check) in CODES.items()}

    assert len(checks) == len({letters for letters, _ in checks})
    assert isinstance(FOUND.findings[0], Finding)
