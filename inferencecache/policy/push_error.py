"""What is wrong with a policy push, in the words the pusher gets to read."""

from typing import Final

from inferencecache.errors import InvalidRequestError

_SHOWN_MAX: Final = 60


class PolicyPushError(InvalidRequestError):
    """A policy push is outside the contract; its text is the answer's body.

    Args:
        message: The whole text.
        field: Dotted path of the offending field, or ``body``.
        value: What was sent, as shown by :func:`shown`.
        allowed: What would have been accepted.
    """

    def __init__(self, message: str, *, field: str, value: str, allowed: str) -> None:
        super().__init__(field=field, value=value, allowed=allowed)
        self.message = message

    def __str__(self) -> str:
        return self.message


def undecodable(reason: str) -> PolicyPushError:
    """Return the error of a body that is no JSON value, or too long a one."""
    return PolicyPushError(
        f"decode policy snapshot: {reason}", field="body", value=reason, allowed="one JSON value"
    )


def misplaced(field: str, value: object, allowed: str) -> PolicyPushError:
    """Return the error of a *value* that *field* cannot take."""
    text = shown(value)
    return PolicyPushError(
        f"decode policy snapshot: {field}: {text} is not allowed; expected {allowed}",
        field=field,
        value=text,
        allowed=allowed,
    )


def unknown_key(field: str, key: str) -> PolicyPushError:
    """Return the error of a *key* that the object at *field* does not have."""
    text = shown(key)
    return PolicyPushError(
        f"decode policy snapshot: {field}: unknown field {text}",
        field=field,
        value=text,
        allowed="a documented key",
    )


def unsupported_version(version: int) -> PolicyPushError:
    """Return the error of a push in a schema that is too old or too new."""
    return PolicyPushError(
        "unsupported policy snapshot version",
        field="version",
        value=shown(version),
        allowed="a supported version",
    )


def shown(value: object) -> str:
    """Return *value* as a short text that any log and any response can carry."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = ascii(value[:_SHOWN_MAX] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
