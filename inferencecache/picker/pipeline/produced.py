"""What a producer hands back; nothing of it counts before the director has taken it."""

from inferencecache.picker.pipeline.attributes import AttributeKey, ValueT
from inferencecache.picker.pipeline.endpoint import EndpointView


class Produced:
    """What one producer says about one request; it hands it back and forgets it.

    Attributes:
        about_request: Values by the names of their keys.
        about_endpoints: Values by the names of their keys, by endpoint.
    """

    __slots__ = ("about_endpoints", "about_request")

    def __init__(self) -> None:
        self.about_request: dict[str, object] = {}
        self.about_endpoints: dict[EndpointView, dict[str, object]] = {}

    def put(self, key: AttributeKey[ValueT], value: ValueT) -> None:
        """Say something about the request."""
        self.about_request[key.name] = value

    def put_for(self, endpoint: EndpointView, key: AttributeKey[ValueT], value: ValueT) -> None:
        """Say something about one of its endpoints."""
        values = self.about_endpoints.get(endpoint)
        if values is None:
            self.about_endpoints[endpoint] = {key.name: value}
        else:
            values[key.name] = value
