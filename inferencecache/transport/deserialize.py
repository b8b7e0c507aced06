"""Request deserialisers that do not raise.

A message that does not parse, for example because a string field is not UTF-8, would otherwise end
its call in an error of the library's choice before any of our code runs, and a stream with it. Here
it becomes None, and whoever handles the call decides what that means.
"""

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

MessageT = TypeVar("MessageT", bound=Message)


def lenient(message_class: type[MessageT]) -> Callable[[bytes], MessageT | None]:
    """Return a deserialiser for *message_class* that gives None where bytes do not parse."""
    parse = message_class.FromString

    def parse_or_none(data: bytes) -> MessageT | None:
        try:
            return parse(data)
        except DecodeError:
            return None

    return parse_or_none
