"""What the answers of another server come to."""

import pytest

from inferencecache.app.picker_remote_index import flaw_of
from inferencecache.client import FailOpenCause, LookupResult
from inferencecache.picker.prefix.index_source import IndexFlaw
from inferencecache.types import ReasonCode

HEALTHY = (
    ReasonCode.PREFIX_MATCH,
    ReasonCode.TENANT_HOT,
    ReasonCode.AFFINITY_HINT,
    ReasonCode.NO_HINT,
)
SAID = {
    ReasonCode.TIMEOUT: IndexFlaw.TIMEOUT,
    ReasonCode.UNKNOWN_TENANT: IndexFlaw.UNKNOWN_TENANT,
    ReasonCode.UNKNOWN_MODEL: IndexFlaw.UNKNOWN_MODEL,
    ReasonCode.UNKNOWN_HASH_SCHEME: IndexFlaw.UNKNOWN_HASH_SCHEME,
    ReasonCode.POLICY_REQUIRES_CHAIN: IndexFlaw.POLICY_REQUIRES_CHAIN,
}
UNSAID = {
    FailOpenCause.UNREACHABLE: IndexFlaw.UNREACHABLE,
    FailOpenCause.REFUSED: IndexFlaw.REFUSED,
}


@pytest.mark.parametrize("code", list(ReasonCode))
def test_every_reason_code_is_full_knowledge_or_a_flaw(code: ReasonCode) -> None:
    """Nobody having it is knowledge."""
    assert (code in HEALTHY) != (code in SAID)
    assert flaw_of(LookupResult(reason_code=code)) is SAID.get(code)


@pytest.mark.parametrize("cause", list(FailOpenCause))
def test_every_failure_is_a_flaw(cause: FailOpenCause) -> None:
    """Whatever the client made of it."""
    timed_out = cause is FailOpenCause.DEADLINE
    code = ReasonCode.TIMEOUT if timed_out else ReasonCode.NO_HINT
    expected = IndexFlaw.TIMEOUT if timed_out else UNSAID.get(cause, IndexFlaw.FAILED)
    assert flaw_of(LookupResult(reason_code=code, cause=cause)) is expected
