"""Any bytes give a state and errors; what is wrong changes nothing but what it is about.

Five thousand files on every run; a hundred thousand with ``--long``.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from picker_texts import (
    grant,
    pool_of,
    provider,
    result_of,
    worker_set,
)
from resource_texts import document, load, policy, tenant, together

from inferencecache.clock import ManualClock
from inferencecache.picker.fleet import ObjectName, WorkerSet
from inferencecache.policy import PolicySnapshot
from inferencecache.resources import (
    LoadState,
    ResourceLoader,
    SourceFile,
    product_kinds,
)
from inferencecache.resources.member_states import MemberState
from inferencecache.service.picker_objects import SHOWN_KINDS, PickerObjects
from inferencecache.service.policy_resources import policy_snapshot_slices
from inferencecache.settings.fleet import FleetSettings
from inferencecache.settings.policy import PolicySettings
from inferencecache.settings.resources import ResourceSettings

SEED = 20_263
SETTINGS = ResourceSettings(errors_max=50, nodes_max=5_000, depth_max=16)
SAMPLES = [
    path.read_bytes()
    for path in sorted((Path(__file__).parents[2] / "deploy" / "samples").glob("*.yaml"))
]
RIGHT = [
    policy().encode(),
    policy("{eviction: LFU, evictionTTL: 30m, routingFloorScore: '0.1'}").encode(),
    together(policy("{strategy: {requireChain: true}}"), tenant()).encode(),
    tenant("{tenantID: b, quota: {maxIndexEntries: 10}}", name="b").encode(),
    b"kind: List\napiVersion: v1\nitems: [&a {kind: CachePolicy}, *a]\n",
    together(provider(), worker_set(), grant()).encode(),
    together(provider(name="w"), worker_set(), pool_of("InferenceProvider/w")).encode(),
    pool_of("InferenceProvider/p", "InferenceWorkerSet/w", "InferenceWorkerSet/other/w").encode(),
    document("PickerPolicy", "p", "{rules: [{tenants: [''], action: Deny}]}").encode(),
    document("ModelRewrite", "m", "{rules: [{targets: [{modelRewrite: a}]}]}").encode(),
]
ENDPOINTS = [
    b"- {name: a, address: '10.0.0.1:8000'}\n- {name: b, address: '[::1]:1', weight: 2}\n",
    b"[]",
    b'[{"name": "c", "address": "h:1", "labels": {"a": "b"}, "role": "decode"}]',
]
PARTS = [
    *(b"'", b'"', b"[", b"]", b"{", b"}", b": ", b"\n", b"- ", b"---\n", b"&a ", b"*a", b"<<: *a"),
    *(b"!!str ", b"null", b"~", b"\x00", b"\xff", b"\xc2\xb5s", b"1e400", b".nan", b"9" * 30),
    *(b"models: ", b"endpoints: ", b"tiers: ", b"InferenceWorkerSet", b"InferenceProvider", b"p"),
    *(b"metadata:", b"spec: ", b"name: ", b"kind: CacheTenant", b"\t", b"? ", b"|\n", b"%YAML 1.1"),
]
OTHER = SourceFile(name="other.yaml", content=policy(name="kept", namespace="other").encode())


def mutated(rng: random.Random, right: Sequence[bytes] = RIGHT) -> bytes:
    """Return one of the files that are *right*, or a sample, with a few places changed."""
    data = bytearray(rng.choice(SAMPLES if rng.random() < 0.2 and right is RIGHT else right))
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = rng.choice(PARTS)
            case 1:
                data[at:at] = rng.choice(PARTS)
            case 2:
                del data[at : at + rng.randint(1, 12)]
            case 3:
                del data[at:]
            case _:
                data[at:at] = rng.choice(right)
    return bytes(data)


def check(content: bytes, before: LoadState) -> LoadState:
    """Load *content* beside another file and over *before*, and check what must hold then."""
    loader = ResourceLoader(product_kinds(), SETTINGS)

    after = loader.load([SourceFile(name="a.yaml", content=content), OTHER], before)

    assert set(after.states) == set(after.objects)
    assert after.held <= after.objects.keys() & before.objects.keys()
    assert all(after.objects[key] is before.objects[key] for key in after.held)
    assert any(key.namespace == "other" for key in after.objects) or after.errors
    assert bool(after.errors) == any(after.errors_by_kind.values())
    for error in after.errors:
        assert str(error).isprintable()
    if not after.readings["a.yaml"].documents and after.errors:
        assert before.objects.keys() <= after.objects.keys()
    if not after.errors:
        assert not after.held
    flattened(after)
    check_fleet(after)
    return after


def check_fleet(state: LoadState) -> None:
    """Check that every accepted member can be picked, no other one can, and all can be shown."""
    objects = PickerObjects(FleetSettings(), ManualClock())
    result_of(objects.apply_slices(state))
    fleet = objects.fleet
    picked = {
        ("InferenceWorkerSet" if isinstance(member, WorkerSet) else "InferenceProvider", member.key)
        for tier in fleet.everything.tiers
        for member in tier.members
    }
    accepted = {
        (key.kind, ObjectName(namespace=key.namespace, name=key.name))
        for key, found in state.states.items()
        if found.name == MemberState.ACCEPTED and key.kind != "InferencePool"
    }
    assert picked == accepted
    for pool in fleet.pools.values():
        members = [member for tier in pool.tiers for member in tier.members]
        assert {member.key for member in members} <= {key for _kind, key in picked}
    shown = {kind.kind for kind in SHOWN_KINDS}
    items = result_of(objects.manifests_slices())["items"]
    assert len(items) == sum(key.kind in shown for key in state.objects)
    json.dumps(items)


def flattened(state: LoadState) -> PolicySnapshot:
    """Return what the store would get; every accepted object can be put into effect."""
    steps = policy_snapshot_slices(state, PolicySettings())
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            snapshot: PolicySnapshot = finished.value
            return snapshot


def fuzz(count: int, seed: int) -> tuple[int, int]:
    """Load *count* files, each over the state that the one before left.

    Returns:
        How many of them had no error, and how many left an object in its last good state.
    """
    rng = random.Random(seed)
    state = load({})
    right = held = 0
    for step in range(count):
        if step % 20 == 0:
            state = check(rng.choice(SAMPLES + RIGHT), LoadState())
        content = rng.randbytes(rng.randrange(40)) if rng.random() < 0.1 else mutated(rng)
        state = check(content, state)
        right += not state.errors
        held += bool(state.held)
    return right, held


@pytest.mark.timeout(300)
def test_no_file_upsets_the_loader() -> None:
    """Five thousand mutated and random files are loaded or refused; both happen often."""
    right, held = fuzz(5_000, SEED)

    assert right > 200
    assert held > 500


@pytest.mark.long
@pytest.mark.timeout(3_600)
def test_no_file_upsets_the_loader_for_long() -> None:
    """The same for a hundred thousand."""
    right, held = fuzz(100_000, SEED + 1)

    assert right > 4_000
    assert held > 10_000


@pytest.mark.timeout(300)
def test_no_endpoints_file_upsets_the_loader() -> None:
    """A worker set has the endpoints of the last file without a mistake."""
    rng = random.Random(SEED + 2)
    loader = ResourceLoader(product_kinds(), SETTINGS)
    spec = "{models: [{name: a}], endpointsFile: a.endpoints.yaml}"
    owner = SourceFile(name="w.yaml", content=worker_set(spec).encode())
    state, right, held = load({}), 0, 0
    for _ in range(3_000):
        content = mutated(rng, ENDPOINTS)
        before = state
        state = loader.load([SourceFile(name="a.endpoints.yaml", content=content), owner], before)
        check_fleet(state)
        right += not state.errors
        if state.errors and before.objects:
            held += 1
            assert state.objects == before.objects
    assert right > 100
    assert held > 500


@given(st.binary(max_size=60))
def test_any_bytes(content: bytes) -> None:
    """Arbitrary bytes are loaded or refused."""
    check(content, LoadState())


@given(st.text(max_size=60))
def test_any_text(content: str) -> None:
    """So are arbitrary texts."""
    check(content.encode("utf-8", "surrogatepass"), LoadState())
