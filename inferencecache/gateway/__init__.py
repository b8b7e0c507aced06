"""What a gateway decides without any I/O: statuses, retries, headers, what an answer says."""

from inferencecache.gateway.answer_facts import AnswerFacts
from inferencecache.gateway.answer_scan import AnswerScan
from inferencecache.gateway.api_paths import API_PATHS, ErrorForm, error_form_of
from inferencecache.gateway.call_options import printable, qos_name
from inferencecache.gateway.error_page import error_page
from inferencecache.gateway.forwarded_headers import answer_headers, request_headers
from inferencecache.gateway.gaps import GAP_LAYOUT, Gaps
from inferencecache.gateway.refusal import (
    BAD_HEAD,
    BAD_UPLOAD,
    LONG_HEAD,
    NO_ROUTE,
    NOT_ALLOWED,
    PICKER_DOWN,
    SILENT_UPLOAD,
    TOO_LARGE,
    UNKNOWN_KEY,
    UNPACKED_ONLY,
    Refusal,
    refusal_of_call,
    refusal_of_doubled,
    refusal_of_pick,
    refusal_of_provider,
)
from inferencecache.gateway.replay_room import KeptBody, ReplayRoom
from inferencecache.gateway.retrying import Failure, may_retry
from inferencecache.gateway.target_url import target_url

__all__ = [
    "API_PATHS",
    "BAD_HEAD",
    "BAD_UPLOAD",
    "GAP_LAYOUT",
    "LONG_HEAD",
    "NOT_ALLOWED",
    "NO_ROUTE",
    "PICKER_DOWN",
    "SILENT_UPLOAD",
    "TOO_LARGE",
    "UNKNOWN_KEY",
    "UNPACKED_ONLY",
    "AnswerFacts",
    "AnswerScan",
    "ErrorForm",
    "Failure",
    "Gaps",
    "KeptBody",
    "Refusal",
    "ReplayRoom",
    "answer_headers",
    "error_form_of",
    "error_page",
    "may_retry",
    "printable",
    "qos_name",
    "refusal_of_call",
    "refusal_of_doubled",
    "refusal_of_pick",
    "refusal_of_provider",
    "request_headers",
    "target_url",
]
