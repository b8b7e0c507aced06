"""Why a body is no inference request, in words that quote nothing of it."""

from enum import StrEnum

from inferencecache.errors import InferenceCacheError


class BodyFlaw(StrEnum):
    """What is wrong; callers see it as ``body=...`` in the reason of a BAD_REQUEST."""

    EMPTY = "empty"
    NOT_UTF8 = "not_utf8"
    TOO_DEEP = "too_deep"
    MALFORMED = "malformed"
    NOT_AN_OBJECT = "not_an_object"
    NUMBER_TOO_LONG = "number_too_long"
    MODEL_MISSING = "model_missing"
    MODEL_NOT_TEXT = "model_not_text"
    MODEL_EMPTY = "model_empty"
    MODEL_TOO_LONG = "model_too_long"
    MODEL_TOO_OFTEN = "model_too_often"
    MESSAGES_NOT_A_LIST = "messages_not_a_list"
    PROMPT_NOT_TEXT_OR_LIST = "prompt_not_text_or_list"
    INPUT_NOT_TEXT_OR_LIST = "input_not_text_or_list"
    UNKNOWN_SHAPE = "unknown_shape"


class LaboriousBodyError(InferenceCacheError):
    """Reading a body would take longer than its reader may."""


class BadBodyError(InferenceCacheError):
    """A body cannot be routed.

    Args:
        flaw: What is wrong.
        at_byte: Where, if known.
    """

    def __init__(self, flaw: BodyFlaw, at_byte: int | None = None) -> None:
        super().__init__(flaw, at_byte)
        self.flaw = flaw
        self.at_byte = at_byte

    @property
    def reason(self) -> str:
        """What a caller is told."""
        where = "" if self.at_byte is None else f";at={self.at_byte}"
        return f"body={self.flaw.value}{where}"
