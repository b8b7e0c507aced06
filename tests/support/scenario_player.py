"""Plays scenarios, step by step, against anything that speaks the wire's messages."""

import json
import zlib
from collections.abc import Callable, Iterable
from operator import index
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message
from scenario_compare import is_same
from scenario_file import lines_of

from inferencecache.v1alpha1 import inferencecache_pb2 as wire

Json = dict[str, Any]


class Target(Protocol):
    """What a scenario is played against."""

    def set_time(self, now_us: int) -> None:
        """Set the server's clock, Unix microseconds."""
        ...

    def report(self, update: wire.CacheStateUpdate) -> None:
        """Take one message of a ReportCacheState stream."""
        ...

    def publish(self, event: wire.CacheEvent) -> None:
        """Take a PublishEvent."""
        ...

    def push_policy(self, body: bytes) -> int:
        """Take a push to /policy and return the HTTP status."""
        ...

    def sweep(self) -> None:
        """Run one expiry sweep."""
        ...

    def look_up(self, request: wire.LookupRouteRequest) -> wire.LookupRouteResponse:
        """Answer LookupRoute."""
        ...

    def cache_state(self, request: wire.GetCacheStateRequest) -> wire.GetCacheStateResponse:
        """Answer GetCacheState."""
        ...

    def snapshot(self) -> bytes:
        """Return the body of GET /snapshot."""
        ...

    def counts(self) -> Json:
        """Return what is held and what was evicted so far."""
        ...


class Failure(NamedTuple):
    """A step whose answer was not the one wanted; number 0 stands for what comes before steps."""

    scenario: str
    step: int
    operation: str
    want: object
    got: object

    def __str__(self) -> str:
        """Say where, what was wanted and what came."""
        return (
            f"{self.scenario}: step {self.step} ({self.operation})\n"
            f"  want {_shown(self.want)}\n"
            f"  got  {_shown(self.got)}"
        )


def _shown(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


class Report(NamedTuple):
    """How the scenarios of some files went."""

    passed: int
    failures: list[Failure]


MakeTarget = Callable[[Json], Target]


def play_files(paths: Iterable[Path], make_target: MakeTarget) -> Report:
    """Play every scenario of the files, each against a target of its own.

    Whatever goes wrong is one scenario's failure; a file that cannot be read counts as one.
    """
    passed = 0
    failures = []
    for path in paths:
        try:
            lines = list(lines_of(path))
        except (OSError, EOFError, zlib.error) as error:
            failures.append(Failure(str(path), 0, "read", "a file of scenarios", repr(error)))
            continue
        for number, line in enumerate(lines, start=1):
            failure = _play_line(f"{path}: scenario {number}", line, make_target)
            passed += failure is None
            failures += [failure] if failure else []
    return Report(passed, failures)


def _play_line(place: str, line: bytes, make_target: MakeTarget) -> Failure | None:
    """Play the scenario in one line; *place* names it where it does not name itself."""
    try:
        scenario = json.loads(line)
        name, steps = str(scenario["name"]), list(scenario["steps"])
        target = make_target(scenario["config"])
    except Exception as error:  # noqa: BLE001 - anything may stand in the line
        return Failure(place, 0, "begin", "a scenario", repr(error))
    return play(name, steps, target)


def play(name: str, steps: list[Json], target: Target) -> Failure | None:
    """Play one scenario up to its first wrong answer or exception."""
    for number, step in enumerate(steps, start=1):
        operation, want, got = "?", None, None
        try:
            operation, want = step["op"], step.get("want")
            target.set_time(index(step["at_us"]))
            got = STEPS[operation](target, step)
            if want is None or is_same(got, want):
                continue
        except Exception as error:  # noqa: BLE001 - a target that breaks is a target that fails
            got = repr(error)
        return Failure(name, number, str(operation), want, got)
    return None


M = TypeVar("M", bound=Message)


def _parsed(fields: Json, message: M) -> M:
    return json_format.ParseDict(fields, message)


def _report(target: Target, step: Json) -> None:
    target.report(_parsed(step["update"], wire.CacheStateUpdate()))


def _publish(target: Target, step: Json) -> None:
    target.publish(_parsed(step["event"], wire.CacheEvent()))


def _push_policy(target: Target, step: Json) -> Json:
    body = step["body"]
    raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return {"status": target.push_policy(raw)}


def _sweep(target: Target, _step: Json) -> None:
    target.sweep()


def _look_up(target: Target, step: Json) -> Json:
    answer = target.look_up(_parsed(step["request"], wire.LookupRouteRequest()))
    got = {
        "reason_code": answer.reason_code,
        "adapter_id": answer.adapter_id,
        "replica_scores": [
            {
                "replica_id": replica.replica_id,
                "score": replica.score,
                "matched_tokens": replica.matched_tokens,
                "estimated_cache_hit_prob": replica.estimated_cache_hit_prob,
                "tier": replica.tier,
            }
            for replica in answer.replica_scores
        ],
    }
    return got | ({"token_ids": list(answer.token_ids)} if answer.token_ids else {})


def _cache_state(target: Target, step: Json) -> Json:
    answer = target.cache_state(_parsed(step["request"], wire.GetCacheStateRequest()))
    fields = ["replica_id", "cache_memory_bytes", "hit_rate", "pressure"]
    fields += ["t2_hit_tokens", "t2_query_tokens"]
    if any(replica.client_version for replica in answer.replicas):
        fields.append("client_version")
    return {
        "replicas": [{name: getattr(row, name) for name in fields} for row in answer.replicas],
        "summary": {
            "total_prefixes": answer.summary.total_prefixes,
            "hot_prefixes": answer.summary.hot_prefixes,
        },
    }


def _snapshot(target: Target, _step: Json) -> Json:
    return json.loads(target.snapshot())


def _counts(target: Target, _step: Json) -> Json:
    return target.counts()


STEPS: dict[str, Callable[[Target, Json], Any]] = {
    "report": _report,
    "event": _publish,
    "policy": _push_policy,
    "sweep": _sweep,
    "lookup": _look_up,
    "state": _cache_state,
    "snapshot": _snapshot,
    "counts": _counts,
}
