"""Request deserialisers that do not raise.

A message that does not parse, for example because a string field is not UTF-8, would otherwise end
its call in an error of the library's choice before any of our code runs, and a stream with it. Here
it becomes None, and whoever handles the call decides what that means. So does one that is longer
than any of its kind: the library parses in one go, and eight million empty fields take seconds.
"""

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

MessageT = TypeVar("MessageT", bound=Message)


def lenient(
    message_class: type[MessageT], bytes_max: int | None = None
) -> Callable[[bytes], MessageT | None]:
    """Return a deserialiser for *message_class* that gives None where bytes do not parse.

    Args:
        message_class: What it makes.
        bytes_max: Longest message that is parsed; None for any.
    """
    parse = message_class.FromString

    def parse_or_none(data: bytes) -> MessageT | None:
        if bytes_max is not None and len(data) > bytes_max:
            return None
        try:
            return parse(data)
        except DecodeError:
            return None

    return parse_or_none
