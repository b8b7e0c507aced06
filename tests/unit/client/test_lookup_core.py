"""What the clients do around a call: deadline, numbers, warnings once."""

import logging
import warnings

import pytest
from prometheus_client import CollectorRegistry

from inferencecache.client.lookup_core import LookupCore
from inferencecache.client.notices import ConfigurationWarning, NoMetrics, WarnOnce, log_warning
from inferencecache.clock import NS_PER_MS, ManualClock
from inferencecache.settings.client import ClientSettings
from inferencecache.transport.client_prometheus import PrometheusClientMetrics
from inferencecache.transport.client_values import (
    FailOpenCause,
    LookupAnswer,
    LookupFailure,
    LookupQuery,
)
from inferencecache.types import ReasonCode


def query(tenant_id: str = "t", model_id: str = "m", hash_scheme: str = "vllm") -> LookupQuery:
    """Return a query under a key."""
    return LookupQuery(tenant_id=tenant_id, model_id=model_id, hash_scheme=hash_scheme)


def test_deadline_defaults_to_the_setting() -> None:
    """No wish means the setting; a wish is milliseconds."""
    settings = ClientSettings(lookup_deadline_ns=30 * NS_PER_MS)
    core = LookupCore(settings, NoMetrics(), log_warning, ManualClock())

    assert core.timeout_s(None) == 0.03
    assert core.timeout_s(5) == 0.005
    assert core.timeout_s(0) == 0


def test_prometheus_counts_by_closed_vocabularies() -> None:
    """Each lookup is counted once by its code, once more by its cause, and timed."""
    registry, clock = CollectorRegistry(), ManualClock()
    core = LookupCore(ClientSettings(), PrometheusClientMetrics(registry), lambda _: None, clock)

    for outcome in (
        LookupAnswer("NO_HINT"),
        LookupAnswer("INVENTED"),
        LookupAnswer("UNKNOWN_MODEL"),
        LookupFailure(FailOpenCause.DEADLINE, ""),
    ):
        started_ns = core.begin()
        clock.advance_ns(2 * NS_PER_MS)
        core.finish(started_ns, query(), outcome, None)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"inferencecache_client_{name}", labels)

    assert value("lookups_total", reason_code="NO_HINT") == 2
    assert value("lookups_total", reason_code="TIMEOUT") == 1
    assert value("lookups_total", reason_code="INVENTED") is None
    assert value("hints_missing_total", cause="unknown_code") == 1
    assert value("hints_missing_total", cause="deadline") == 1
    assert value("configuration_errors_total", reason_code="UNKNOWN_MODEL") == 1
    assert value("lookup_seconds_count") == 4
    assert value("lookup_seconds_sum") == pytest.approx(0.008)


def test_each_wrong_key_is_raised_once() -> None:
    """A key counts down to the part that is wrong; what lies below it does not matter."""
    raised: list[ConfigurationWarning] = []
    once = WarnOnce(raised.append, warnings_max=100)

    for _ in range(2):
        once.raise_once(ReasonCode.UNKNOWN_TENANT, query(model_id="a"))
        once.raise_once(ReasonCode.UNKNOWN_TENANT, query(model_id="b"))
        once.raise_once(ReasonCode.UNKNOWN_TENANT, query(tenant_id="u"))
        once.raise_once(ReasonCode.UNKNOWN_MODEL, query(hash_scheme="x"))
        once.raise_once(ReasonCode.UNKNOWN_MODEL, query(hash_scheme="y"))
        once.raise_once(ReasonCode.UNKNOWN_HASH_SCHEME, query(hash_scheme="x"))
        once.raise_once(ReasonCode.UNKNOWN_HASH_SCHEME, query(hash_scheme="y"))

    assert [(w.reason_code, w.tenant_id, w.model_id, w.hash_scheme) for w in raised] == [
        ("UNKNOWN_TENANT", "t", "a", "vllm"),
        ("UNKNOWN_TENANT", "u", "m", "vllm"),
        ("UNKNOWN_MODEL", "t", "m", "x"),
        ("UNKNOWN_HASH_SCHEME", "t", "m", "x"),
        ("UNKNOWN_HASH_SCHEME", "t", "m", "y"),
    ]


def test_warnings_are_bounded() -> None:
    """Past the bound nothing is raised any more, so that foreign model ids cannot flood a log."""
    raised: list[ConfigurationWarning] = []
    once = WarnOnce(raised.append, warnings_max=3)

    for number in range(10):
        once.raise_once(ReasonCode.UNKNOWN_MODEL, query(model_id=str(number)))

    assert [warning.model_id for warning in raised] == ["0", "1", "2"]


def test_warnings_warn_fits_as_a_callback() -> None:
    """The warning is one for the standard machinery, with the key in its text."""
    once = WarnOnce(warnings.warn, warnings_max=1)

    with pytest.warns(ConfigurationWarning, match=r"UNKNOWN_TENANT: .* tenant_id='t'"):
        once.raise_once(ReasonCode.UNKNOWN_TENANT, query())


def test_default_callback_logs(caplog: pytest.LogCaptureFixture) -> None:
    """Without a callback the warning is one line in the client's log."""
    with caplog.at_level(logging.WARNING, "inferencecache.client"):
        WarnOnce(log_warning, warnings_max=1).raise_once(ReasonCode.UNKNOWN_HASH_SCHEME, query())

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "hash_scheme='vllm'" in caplog.text
