"""What the doctor says of a server that gives no answer."""

import pytest

from inferencecache.app.doctor_index import Looked, judge_index
from inferencecache.client import FailOpenCause, LookupResult, ReasonCode
from inferencecache.settings.doctor import DoctorSettings

REFUSED = "UNAVAILABLE: last error: UNKNOWN: ipv4:127.0.0.1:1: ...: Connection refused"
UNRESOLVED = "UNAVAILABLE: errors resolving x:1: [field:hostname lookup error:no address]"


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        (REFUSED, "nothing listens there"),
        (UNRESOLVED, "the host name has no address"),
        ("DEADLINE_EXCEEDED: Deadline Exceeded", "there is no answer"),
        ("UNAVAILABLE: something new", "UNAVAILABLE: something new"),
    ],
)
def test_reason_is_in_words(detail: str, words: str) -> None:
    """The text of gRPC is kept only where it is not understood."""
    silent = LookupResult(
        reason_code=ReasonCode.NO_HINT, cause=FailOpenCause.UNREACHABLE, detail=detail
    )
    found = judge_index(
        Looked(by_keys=silent, by_tokens=silent),
        DoctorSettings(engine_endpoint="tcp://e:1", server="cache:9090"),
    )

    assert found.code == "EX004"
    assert found.message.endswith(words)
