"""What a producer hands back; nothing of it counts before the director has taken it."""

from typing import Any

from inferencecache.picker.pipeline.attributes import AttributeKey, ValueT
from inferencecache.picker.pipeline.endpoint import EndpointView


class Produced:
    """What one producer says about one request.

    Attributes:
        about_request: Values by key.
        about_endpoints: Values by key, by endpoint.
    """

    __slots__ = ("about_endpoints", "about_request")

    def __init__(self) -> None:
        self.about_request: dict[AttributeKey[Any], object] = {}
        self.about_endpoints: dict[EndpointView, dict[AttributeKey[Any], object]] = {}

    def put(self, key: AttributeKey[ValueT], value: ValueT) -> None:
        """Say something about the request."""
        self.about_request[key] = value

    def put_for(self, endpoint: EndpointView, key: AttributeKey[ValueT], value: ValueT) -> None:
        """Say something about one of its endpoints."""
        self.about_endpoints.setdefault(endpoint, {})[key] = value
