"""Every error the package raises on purpose, split by whose fault it is.

::

    InferenceCacheError
    ├── InvalidRequestError    the caller sent something outside the contract
    ├── MalformedEventError    an engine published something that cannot be decoded
    └── ConfigError            the operator's settings or resources are wrong

A lookup that finds nothing is a value with a reason code, never an exception.
"""


class InferenceCacheError(Exception):
    """The root of the tree."""


class InvalidRequestError(InferenceCacheError):
    """A request is outside the contract.

    Args:
        field: Dotted path of the offending field.
        value: What was sent, shortened if long.
        allowed: What would have been accepted.
    """

    def __init__(self, *, field: str, value: object, allowed: str) -> None:
        super().__init__(f"{field}: {value!r} is not allowed; expected {allowed}")
        self.field = field
        self.value = value
        self.allowed = allowed


class MalformedEventError(InferenceCacheError):
    """An engine event cannot be decoded.

    Args:
        reason: A short, stable token that may serve as a metric label.
        detail: What was wrong, without token ids or prompt text.
    """

    def __init__(self, *, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class ConfigError(InferenceCacheError):
    """A setting or resource is wrong.

    Args:
        field: The flag, variable, key or dotted path.
        value: What was given.
        allowed: What would have been accepted.
        source: Where it came from, for example ``flag`` or a file name.
    """

    def __init__(self, *, field: str, value: object, allowed: str, source: str = "") -> None:
        origin = f" (from {source})" if source else ""
        super().__init__(f"{field}: {value!r} is not allowed{origin}; expected {allowed}")
        self.field = field
        self.value = value
        self.allowed = allowed
        self.source = source
