"""The log: one event a line on standard error, as JSON or as ``key=value`` text.

Every line has ``time``, ``level`` and ``msg``, the event's name; the event's own fields follow.
Hashes, prompts, token ids, template variables and credentials are never fields.
"""

import json
import logging
import re
import sys
import time
from datetime import UTC, datetime
from typing import Final, Protocol, TextIO

from inferencecache.settings.grpc import GrpcSettings
from inferencecache.settings.logs import LogSettings
from inferencecache.transport.grpc_core_log import GrpcCoreFilter, filter_grpc_core

Field = str | int | float | bool

LOGGER_NAME: Final = "inferencecache"

_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_LEVEL_NAMES: Final = {logging.WARNING: "WARN", logging.CRITICAL: "ERROR"}
_PLAIN_TEXT: Final = re.compile(r"[^\s\"=\\\x00-\x1f\x7f]+")


class EventLog(Protocol):
    """Where a part of the server writes its events."""

    def debug(self, event: str, **fields: Field) -> None:
        """Log *event* for somebody who is looking into a problem."""
        ...

    def info(self, event: str, **fields: Field) -> None:
        """Log *event* as part of normal life."""
        ...

    def warning(self, event: str, **fields: Field) -> None:
        """Log *event* as something an operator should know."""
        ...

    def error(self, event: str, **fields: Field) -> None:
        """Log *event* as a failure."""
        ...

    def exception(self, event: str, **fields: Field) -> None:
        """Log *event* as a bug, with the traceback of the exception being handled."""
        ...


class StructuredLog:
    """An :class:`EventLog` on top of :mod:`logging`."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger or logging.getLogger(LOGGER_NAME)

    def debug(self, event: str, **fields: Field) -> None:
        """Log *event* at DEBUG."""
        self._logger.debug(event, extra={"fields": fields})

    def info(self, event: str, **fields: Field) -> None:
        """Log *event* at INFO."""
        self._logger.info(event, extra={"fields": fields})

    def warning(self, event: str, **fields: Field) -> None:
        """Log *event* at WARN."""
        self._logger.warning(event, extra={"fields": fields})

    def error(self, event: str, **fields: Field) -> None:
        """Log *event* at ERROR."""
        self._logger.error(event, extra={"fields": fields})

    def exception(self, event: str, **fields: Field) -> None:
        """Log *event* at ERROR with the exception being handled."""
        self._logger.error(event, extra={"fields": fields}, exc_info=sys.exception())


class StructuredFormatter(logging.Formatter):
    """Writes a record as one line.

    Args:
        form: ``json`` or ``text``.
    """

    def __init__(self, form: str) -> None:
        super().__init__()
        self._is_json = form == "json"

    def format(self, record: logging.LogRecord) -> str:
        """Return *record* as one line without its end."""
        fields = self._fields(record)
        if self._is_json:
            return json.dumps(fields, ensure_ascii=False, default=str)
        return " ".join(f"{name}={_quote(str(value))}" for name, value in fields.items())

    def _fields(self, record: logging.LogRecord) -> dict[str, object]:
        moment = datetime.fromtimestamp(record.created, tz=UTC)
        fields: dict[str, object] = {
            "time": moment.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": _LEVEL_NAMES.get(record.levelno, record.levelname),
            "msg": record.getMessage(),
        }
        fields.update(getattr(record, "fields", {}))
        if record.name != LOGGER_NAME:
            fields["logger"] = record.name
        if record.exc_info and record.exc_info[1] is not None:
            fields["error"] = f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}"
            fields["stack"] = self.formatException(record.exc_info)
        return fields


def configure_log(
    settings: LogSettings, stream: TextIO, *, grpc_settings: GrpcSettings | None = None
) -> None:
    """Send every log line of the process to *stream*.

    Libraries are heard from WARN on, whatever the level: their chatter is not ours to show.

    Args:
        settings: Form and level.
        stream: Where lines go.
        grpc_settings: How often trouble with calls is worth a line; the defaults if None.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(StructuredFormatter(settings.format))
    level = _LEVELS[settings.level]
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(max(level, logging.WARNING))
    logging.getLogger(LOGGER_NAME).setLevel(level)
    interval_ns = (grpc_settings or GrpcSettings()).failure_log_interval_ns
    filter_grpc_core(GrpcCoreFilter(interval_ns, time.monotonic_ns))


def _quote(text: str) -> str:
    return text if _PLAIN_TEXT.fullmatch(text) else json.dumps(text, ensure_ascii=False)
