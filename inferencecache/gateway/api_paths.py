"""The paths that are routed, and the form in which clients of each expect errors."""

from enum import StrEnum
from typing import Final


class ErrorForm(StrEnum):
    """How an error is written."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


API_PATHS: Final = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/messages",
    "/v1/rerank",
    "/v1/score",
)
"""Each takes a POST with a body that the picker can read; anything else is nobody's."""


def error_form_of(path: str) -> ErrorForm:
    """Return how clients of *path* expect errors.

    >>> error_form_of("/v1/messages").value
    'anthropic'
    """
    return ErrorForm.ANTHROPIC if path == "/v1/messages" else ErrorForm.OPENAI
