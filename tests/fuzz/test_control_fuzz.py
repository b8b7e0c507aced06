"""Whatever is sent to /policy and /probe: never a 5xx, never a change by what was refused."""

import io
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from controlled import Controlled, controlled

POLICY_KEYS = (
    "version",
    "policies",
    "tenants",
    "namespace",
    "evictionTTL",
    "minimumPrefixTokens",
    "minimumMatchedTokens",
    "routingFloorScore",
    "lookupTimeoutMs",
    "affinityRouting",
    "eviction",
    "strategy",
    "enableChainMatching",
    "tenantID",
    "maxIndexEntries",
    "isolationMode",
)
PROBE_KEYS = ("backend", "model", "hashScheme", "backendType", "BACKEND", "tenant")
SCALARS = (
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    2**31,
    2**63,
    10**40,
    0.1,
    1e300,
    "",
    "x",
    "lfu",
    "\ud800",
)
CI_INPUTS, LONG_INPUTS = 5_000, 100_000
IN_FORCE = b'{"version":7,"policies":[{"namespace":"kept","minimumPrefixTokens":3}]}'


class Garbage:
    """Makes bodies from a seed."""

    def __init__(self, seed: int, keys: tuple[str, ...]) -> None:
        self._random = random.Random(seed)
        self._keys = keys

    def value(self, depth: int) -> Any:
        """Return something."""
        choose = self._random
        if depth == 0 or choose.random() < 0.4:
            return choose.choice(SCALARS)
        if choose.random() < 0.4:
            return [self.value(depth - 1) for _ in range(choose.randrange(4))]
        return {
            choose.choice(self._keys): self.value(depth - 1) for _ in range(choose.randrange(5))
        }

    def plausible(self) -> Any:
        """Return a document that is nearly right."""
        choose = self._random
        document: dict[str, Any] = {"version": choose.choice((3, 4, 5, 6, 7, 7, 7, 8))}
        for key, name in (("policies", "namespace"), ("tenants", "tenantID")):
            if choose.random() < 0.7:
                document[key] = [
                    {name: choose.choice(("a", "b", "")), **self._some_members()}
                    for _ in range(choose.randrange(3))
                ]
        return document

    def _some_members(self) -> dict[str, Any]:
        if self._random.random() < 0.5:
            return {}
        return {self._random.choice(self._keys): self._random.choice(SCALARS)}

    def body(self) -> bytes:
        """Return a body."""
        choose = self._random
        kind = choose.random()
        if kind < 0.15:
            return choose.randbytes(choose.randrange(40))
        document = self.value(4) if kind < 0.4 else self.plausible()
        text = bytearray(json.dumps(document).encode())
        if kind > 0.7:
            for _ in range(choose.randrange(1, 4)):
                at = choose.randrange(len(text) + 1)
                text[at : at + choose.randrange(4)] = choose.randbytes(choose.randrange(4))
        return bytes(text)


@pytest.fixture
async def control() -> AsyncIterator[Controlled]:
    """Run an open server."""
    async with controlled() as running:
        yield running


async def send_all(control: Controlled, path: str, garbage: Garbage, count: int) -> dict[int, int]:
    """Send *count* bodies; return how many ended in which status."""
    statuses: dict[int, int] = {}
    layers = control.server.plane.policy_layers
    await control.ask("POST", "/policy", IN_FORCE)
    for _ in range(count):
        body = garbage.body()
        before = layers.view()
        reply = await control.ask("POST", path, io.BytesIO(body))  # type: ignore[arg-type] # any body
        statuses[reply.status] = statuses.get(reply.status, 0) + 1
        assert reply.status < 500, (body, reply.text)
        if reply.status >= 400:
            assert layers.view() == before, body
            assert reply.text.endswith("\n")
    return statuses


@pytest.mark.parametrize("path", ["/policy", "/probe"])
async def test_five_thousand_bodies(control: Controlled, path: str) -> None:
    """Some of them are accepted, most are refused, none breaks anything."""
    keys = POLICY_KEYS if path == "/policy" else PROBE_KEYS
    statuses = await send_all(control, path, Garbage(20_260, keys), CI_INPUTS // 2)
    assert set(statuses) <= {200, 204, 400}
    assert statuses[400] > 100
    if path == "/policy":
        assert statuses[204] > 100


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("path", ["/policy", "/probe"])
async def test_a_hundred_thousand_bodies(control: Controlled, path: str) -> None:
    """The same with another seed, for longer."""
    keys = POLICY_KEYS if path == "/policy" else PROBE_KEYS
    statuses = await send_all(control, path, Garbage(1, keys), LONG_INPUTS)
    assert set(statuses) <= {200, 204, 400}
