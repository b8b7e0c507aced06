"""What callers report about a request, where any report will do."""

from typing import Final

from inferencecache.picker.decisions import AbortReport, FinalTokenReport, FirstTokenReport

FIRST: Final = FirstTokenReport(observed_ttft_ms=1, upstream_status=200)
FINAL: Final = FinalTokenReport(
    model="m",
    prompt_tokens=1,
    completion_tokens=1,
    cached_tokens=None,
    itl_bucket_counts=(),
    itl_bucket_layout=0,
)
ABORT: Final = AbortReport(reason="NOT_DISPATCHED", detail="")
