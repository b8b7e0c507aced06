"""Every metric of a gateway, once; the reference derives from it."""

from typing import Final

from inferencecache.transport.metric_catalog import MetricKind, MetricSpec

_TIMES: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

REQUESTS: Final = MetricSpec(
    name="inferencecache_gateway_requests_total",
    kind=MetricKind.COUNTER,
    labels=("path", "status"),
    help="Requests by path and by the status of the answer; 0 where the client's connection ended "
    "before its end.",
)
IN_FLIGHT: Final = MetricSpec(
    name="inferencecache_gateway_inflight",
    kind=MetricKind.GAUGE,
    help="Requests that are being worked on.",
)
KEPT_BYTES: Final = MetricSpec(
    name="inferencecache_gateway_replay_bytes",
    kind=MetricKind.GAUGE,
    help="Bytes of bodies that are kept for a second attempt.",
)
ANSWERS: Final = MetricSpec(
    name="inferencecache_gateway_upstream_answers_total",
    kind=MetricKind.COUNTER,
    labels=("destination", "status"),
    help="Answers of workers, providers and the fallback by status; 0 stands for none.",
)
CUT_ANSWERS: Final = MetricSpec(
    name="inferencecache_gateway_answers_cut_total",
    kind=MetricKind.COUNTER,
    help="Answers that ended before their end, so that the client's connection was ended, too.",
)
FIRST_BYTES: Final = MetricSpec(
    name="inferencecache_gateway_first_byte_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=_TIMES,
    help="Time from sending a request on to the first byte of its answer's body.",
)
CHOICES: Final = MetricSpec(
    name="inferencecache_gateway_choice_seconds",
    kind=MetricKind.HISTOGRAM,
    buckets_seconds=_TIMES,
    help="Time from the first byte for the picker to its choice, the client's upload included.",
)
CALL_FAILURES: Final = MetricSpec(
    name="inferencecache_gateway_picker_failures_total",
    kind=MetricKind.COUNTER,
    labels=("method", "status"),
    help="Calls to the picker that ended in another gRPC status than OK.",
)
RETRIES: Final = MetricSpec(
    name="inferencecache_gateway_retries_total",
    kind=MetricKind.COUNTER,
    labels=("failure",),
    help="Second attempts, by why the first one failed.",
)
FALLBACKS: Final = MetricSpec(
    name="inferencecache_gateway_fallbacks_total",
    kind=MetricKind.COUNTER,
    help="Requests sent to the fallback because the picker could not be asked.",
)
REPORTS: Final = MetricSpec(
    name="inferencecache_gateway_reports_total",
    kind=MetricKind.COUNTER,
    labels=("method", "result"),
    help="Reports by what became of them: ok, unknown to the picker, failed, or dropped unsent.",
)
PENDING_REPORTS: Final = MetricSpec(
    name="inferencecache_gateway_reports_pending",
    kind=MetricKind.GAUGE,
    help="Reports that wait for the picker.",
)
SECRET_FAILURES: Final = MetricSpec(
    name="inferencecache_gateway_backend_files_refused_total",
    kind=MetricKind.COUNTER,
    help="States of the files of backends that could not be used.",
)

GATEWAY_CATALOG: Final = tuple(
    value for value in list(globals().values()) if isinstance(value, MetricSpec)
)
"""All of them, in the order of the reference page."""
