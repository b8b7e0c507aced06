"""The JSON of /snapshot, its numbers and its times."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferencecache.index import IndexSnapshot, ReplicaRow, TenantRow
from inferencecache.service.float32 import float32_text
from inferencecache.service.rfc3339 import rfc3339
from inferencecache.service.snapshot_body import snapshot_body
from inferencecache.types import StatsReport


def test_empty_snapshot_has_nulls() -> None:
    """Arrays without rows are null, as clients of the contract expect."""
    body = snapshot_body(IndexSnapshot(replicas=(), tenants=(), total_prefixes=0))

    assert body == '{"replicas":null,"tenants":null,"totalPrefixes":0,"hotPrefixes":0}\n'


def test_every_key_in_its_place() -> None:
    """Keys come in the documented order; unset ones that may be absent are."""
    full = ReplicaRow(
        replica_id='r"1',
        tenant_id="acme",
        stats=StatsReport(
            cache_memory_bytes=2048,
            hit_rate=0.10000000149011612,
            pressure=1e-7,
            client_version="never shown",
            t2_hit_tokens=6,
            t2_query_tokens=10,
        ),
        last_seen_ns=1_500_000_000,
        prefix_count=3,
        last_event_ns=2_000_000_000,
    )
    bare = ReplicaRow(
        replica_id="",
        tenant_id="",
        stats=None,
        last_seen_ns=None,
        prefix_count=0,
        last_event_ns=None,
    )
    tenants = (
        TenantRow(tenant_id="", entries=0, hit_rate=0.0, hit_rate_reported=False),
        TenantRow(tenant_id="acme", entries=3, hit_rate=0.5, hit_rate_reported=True),
    )

    body = snapshot_body(IndexSnapshot(replicas=(full, bare), tenants=tenants, total_prefixes=3))

    assert body == (
        '{"replicas":[{"replicaId":"r\\"1","tenant":"acme","cacheMemoryBytes":2048,'
        '"hitRate":0.1,"pressure":1e-7,"lastUpdate":"1970-01-01T00:00:01.5Z","prefixCount":3,'
        '"lastEventAt":"1970-01-01T00:00:02Z","statsReported":true,"t2HitTokens":6,'
        '"t2QueryTokens":10},{"replicaId":"","cacheMemoryBytes":0,"hitRate":0,"pressure":0,'
        '"lastUpdate":"0001-01-01T00:00:00Z","prefixCount":0,'
        '"lastEventAt":"0001-01-01T00:00:00Z"}],"tenants":[{"tenantId":"","indexEntries":0,'
        '"hitRate":0,"memoryUsed":0},{"tenantId":"acme","indexEntries":3,"hitRate":0.5,'
        '"hitRateReported":true,"memoryUsed":0}],"totalPrefixes":3,"hotPrefixes":0}\n'
    )
    assert json.loads(body)["totalPrefixes"] == 3


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999999Z"),
        (1_767_225_600_123_456_000, "2026-01-01T00:00:00.123456Z"),
        ((2**63 - 1) * 1_000, "9999-12-31T23:59:59.999999999Z"),
        (-(2**63) * 1_000, "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_clamped_to_what_can_be_said(time_ns: int, text: str) -> None:
    """Any 64-bit timestamp has a text."""
    assert rfc3339(time_ns) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.5, "0.5"),
        (-2.5, "-2.5"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e-10, "1e-10"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (123456.789, "123456.79"),
        (16777216.0, "16777216"),
        (float("nan"), "0"),
        (float("inf"), "3.4028235e+38"),
        (1e-46, "0"),
        (1.4e-45, "1e-45"),
    ],
)
def test_floats_are_the_shortest_that_read_back(value: float, text: str) -> None:
    """Plain digits between 1e-6 and 1e21, an exponent beyond."""
    assert float32_text(value) == text


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_text_reads_back_as_the_same_float32(value: float) -> None:
    """No float32 changes on its way through the text."""
    read = json.loads(float32_text(value))

    assert struct.pack("<f", read) == struct.pack("<f", value + 0.0 if value else 0.0)
