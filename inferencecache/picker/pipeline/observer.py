"""What the director tells those who count and log."""

from enum import StrEnum
from typing import Protocol


class Hook(StrEnum):
    """The steps of the pipeline, as metric labels."""

    PRE_ADMIT = "pre_admit"
    PRODUCE = "produce"
    ADMIT = "admit"
    FILTER = "filter"
    SCORE = "score"
    PICK = "pick"
    PROFILE = "profile"
    PRE_REQUEST = "pre_request"
    RESPONSE_HEADER = "response_header"
    RESPONSE_BODY = "response_body"


class FailureKind(StrEnum):
    """In which way a plugin failed, as metric labels and in reasons."""

    RAISED = "raised"
    TIMEOUT = "timeout"
    """It took longer than it may."""
    BUSY = "busy"
    """Too many producers were running to start it."""
    UNDECLARED = "undeclared"
    """It wrote a key that it does not declare."""
    INVALID = "invalid"
    """It returned something that its hook may not return."""
    NO_SIGNAL = "no_signal"
    """It had nothing to go by."""


class PipelineObserver(Protocol):
    """Counts and logs; called within a Pick, so it must be quick."""

    def plugin_failed(
        self, plugin: str, hook: Hook, kind: FailureKind, error: BaseException | None
    ) -> None:
        """Learn that a plugin failed, or had nothing to go by."""
        ...

    def produced(self, producer: str, duration_ns: int) -> None:
        """Learn how long a producer took that came in time."""
        ...


class IgnorePlugins:
    """An observer that neither counts nor logs."""

    def plugin_failed(
        self, plugin: str, hook: Hook, kind: FailureKind, error: BaseException | None
    ) -> None:
        """Take no note."""

    def produced(self, producer: str, duration_ns: int) -> None:
        """Take no note."""
