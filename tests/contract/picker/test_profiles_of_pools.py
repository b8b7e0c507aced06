"""Plugins among the resource files: a pool's tiers name profiles, and the profiles decide."""

from pathlib import Path

import grpc
import pytest
from served_picker import messages
from server_process import serving

from inferencecache.kinference.v1 import picker_pb2 as pb
from inferencecache.kinference.v1 import picker_pb2_grpc as pb_grpc

FILES = """
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
  - type: active-request-scorer
  - name: fast
    type: label-selector-filter
    parameters: {matchLabels: {class: fast}}
  - name: nobody
    type: label-selector-filter
    parameters: {matchLabels: {class: none}}
schedulingProfiles:
  - name: spread
    plugins: [{pluginRef: active-request-scorer}]
  - name: fast-only
    plugins: [{pluginRef: fast}, {pluginRef: active-request-scorer}]
  - name: nobody
    plugins: [{pluginRef: nobody}]
---
apiVersion: inferencecache.io/v1alpha1
kind: InferenceWorkerSet
metadata: {name: llama}
spec:
  models: [{name: m}]
  endpoints:
    - {name: a, address: "10.0.0.1:8000", labels: {class: slow}}
    - {name: b, address: "10.0.0.2:8000", labels: {class: fast}}
---
apiVersion: inferencecache.io/v1alpha1
kind: InferenceWorkerSet
metadata: {name: old}
spec:
  models: [{name: m}]
  endpoints:
    - {name: o, address: "10.0.0.9:8000"}
---
apiVersion: inferencecache.io/v1alpha1
kind: InferencePool
metadata: {name: fast}
spec:
  tiers:
    - name: first
      rankBy: Profile
      profile: nobody
      members: [{kind: InferenceWorkerSet, name: old}]
    - name: second
      rankBy: Profile
      profile: fast-only
      members: [{kind: InferenceWorkerSet, name: llama}]
---
apiVersion: inferencecache.io/v1alpha1
kind: InferencePool
metadata: {name: lost}
spec:
  tiers:
    - name: only
      rankBy: Profile
      profile: misspelt
      members: [{kind: InferenceWorkerSet, name: llama}]
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory of resource files with a configuration of plugins among them."""
    (tmp_path / "all.yaml").write_text(FILES)
    return tmp_path


async def picks(picker: pb_grpc.PickerStub, pool: str, count: int) -> list[pb.PickResponse]:
    """Pick *count* times in a pool, or in everything; nothing ends in between."""
    answers = []
    for _ in range(count):
        pushed = await picker.PushBody(messages([b'{"model": "m", "prompt": "x"}']))
        request = pb.PickRequest(body_stream_id=pushed.stream_id)
        if pool:
            request.inference_pool.name = pool
        answers.append(await picker.Pick(request))
    return answers


async def test_tiers_are_ranked_by_the_profiles_they_name(directory: Path) -> None:
    """A tier whose filters leave nobody is passed over; one that names none takes the first."""
    async with (
        serving(f"--resources={directory}") as server,
        grpc.aio.insecure_channel(server.grpc_target) as channel,
    ):
        picker = pb_grpc.PickerStub(channel)
        fast = await picks(picker, "fast", 3)
        everywhere = await picks(picker, "", 3)
        lost = await picks(picker, "lost", 1)

    assert {answer.local.endpoint for answer in fast} == {"10.0.0.2:8000"}
    assert all(answer.reason.startswith("tier=second;rank=fast-only;") for answer in fast)
    assert {answer.local.endpoint for answer in everywhere} == {"10.0.0.1:8000", "10.0.0.9:8000"}
    assert all("rank=spread" in answer.reason for answer in everywhere)
    assert [answer.outcome for answer in lost] == [pb.PickResponse.DEGRADED]
    assert "degraded=profile_missing" in lost[0].reason
