"""Protobuf messages to the core's values and back; no message goes further down than here."""

from inferencecache.transport.convert_lookup import route_request, route_response
from inferencecache.transport.convert_report import (
    UpdateSteps,
    state_update,
    update_steps,
)
from inferencecache.transport.convert_state import (
    WrittenState,
    event_type_name,
    index_event,
    state_response_steps,
)

__all__ = [
    "UpdateSteps",
    "WrittenState",
    "event_type_name",
    "index_event",
    "route_request",
    "route_response",
    "state_response_steps",
    "state_update",
    "update_steps",
]
