"""An object of a picker as people and programs read it: what it asks for, and its status."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from inferencecache.picker.fleet import Fleet, Member, ObjectName, Qualifier, WorkerSet
from inferencecache.resources import ObjectKey, ObjectState, ResourceKind, ResourceObject
from inferencecache.resources.member_states import POOL, WORKER_SET
from inferencecache.resources.schema import Schema, schema_of
from inferencecache.service.picker_conditions import Aspect, ConditionType, aspects_of, state_text
from inferencecache.service.rfc3339 import rfc3339

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What is remembered of an object for as long as it is there.

    Attributes:
        loaded_ns: When it was first there, Unix nanoseconds.
        changes: By condition, its status and since when it has had that.
    """

    loaded_ns: int
    changes: Mapping[ConditionType, tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What is to be shown of an object.

    Attributes:
        kind: Its kind.
        found: The object.
        state: What became of it.
        qualifiers: What happens to it.
        counts: How much it has, under the names of its kind's status.
    """

    kind: ResourceKind[Any]
    found: ResourceObject[msgspec.Struct]
    state: ObjectState
    qualifiers: frozenset[Qualifier]
    counts: Mapping[str, int]

    @property
    def key(self) -> ObjectKey:
        """Which object it is."""
        return self.found.key

    @property
    def aspects(self) -> list[Aspect]:
        """Its conditions."""
        members = self.counts.get("members", 0)
        return list(aspects_of(self.key, self.state, self.qualifiers, members))

    def seen(self, before: Seen | None, now_ns: int) -> Seen:
        """Return what to remember.

        Args:
            before: What was remembered so far; None for an object that was not there.
            now_ns: Unix time in nanoseconds.
        """
        known = before.changes if before is not None else {}
        return Seen(
            loaded_ns=now_ns if before is None else before.loaded_ns,
            changes={aspect.type: _change(aspect, known, now_ns) for aspect in self.aspects},
        )

    def manifest(self, seen: Seen, *, ages: bool) -> Manifest:
        """Return the object in the form that ``kubectl get -o json`` gives.

        Args:
            seen: What is remembered of it.
            ages: Whether it is as old as its first load if it does not say how old it is.
        """
        model: type = self.kind.spec
        return {
            "apiVersion": self.kind.api_version,
            "kind": self.kind.kind,
            "metadata": self._metadata(seen.loaded_ns if ages else None),
            "spec": _completed(msgspec.to_builtins(self.found.spec), schema_of(model)),
            "status": {
                "state": state_text(self.state, self.qualifiers),
                **self.counts,
                "conditions": [_condition(aspect, seen) for aspect in self.aspects],
            },
        }

    def _metadata(self, loaded_ns: int | None) -> Manifest:
        said = self.found.metadata
        created = said.creation_timestamp
        if not isinstance(created, str):
            created = None if loaded_ns is None else rfc3339(loaded_ns)
        return _members_given(
            name=self.key.name,
            namespace=self.key.namespace,
            labels=said.labels,
            creationTimestamp=created,
            resourceVersion=said.resource_version,
        )


def counts_of(key: ObjectKey, fleet: Fleet, member: Member | None) -> dict[str, int]:
    """Return how much an object has, under the names of its kind's status.

    Args:
        key: The object.
        fleet: What is picked from.
        member: What is picked of it; None for a pool, and for what is not accepted.
    """
    if key.kind == WORKER_SET:
        return {"endpoints": len(member.endpoints) if isinstance(member, WorkerSet) else 0}
    if key.kind == POOL:
        pool = fleet.pools[ObjectName(namespace=key.namespace, name=key.name)]
        return {
            "members": sum(len(tier.members) for tier in pool.tiers),
            "tiers": len(pool.tiers),
        }
    return {}


def _change(
    aspect: Aspect, known: Mapping[ConditionType, tuple[str, int]], now_ns: int
) -> tuple[str, int]:
    status, _since_ns = known.get(aspect.type, ("", 0))
    return known[aspect.type] if status == aspect.status else (aspect.status, now_ns)


def _condition(aspect: Aspect, seen: Seen) -> Manifest:
    return {
        "type": aspect.type.value,
        "status": aspect.status,
        "reason": str(aspect.reason),
        "message": aspect.message,
        "lastTransitionTime": rfc3339(seen.changes[aspect.type][1]),
    }


def _members_given(**members: object) -> Manifest:
    return {name: member for name, member in members.items() if member is not None}


def _completed(value: Any, schema: Schema) -> Any:  # noqa: ANN401 - whatever a spec is made of
    """Return *value* as a cluster would: defaults filled in, nothing for what has none."""
    if isinstance(value, list):
        return [_completed(one, schema["items"]) for one in value]
    if not isinstance(value, dict):
        return value
    known: Schema = schema.get("properties", {})
    made: Manifest = {}
    for name, one in value.items():
        member = known.get(name, {})
        if one is not None:
            made[name] = _completed(one, member)
        elif "default" in member:
            made[name] = member["default"]
    return made
