"""The log: one event a line, in two forms."""

import io
import json
import logging

import grpc
import pytest

from inferencecache.settings.logs import LogSettings
from inferencecache.transport.structured_log import StructuredLog, configure_log


def logged(log_format: str, level: str = "info") -> tuple[StructuredLog, io.StringIO]:
    """Return a log and where it goes."""
    stream = io.StringIO()
    configure_log(LogSettings(format=log_format, level=level), stream)
    return StructuredLog(), stream


pytestmark = pytest.mark.usefixtures("untouched_logging")


def test_json_has_time_level_message_and_fields() -> None:
    """One line is one JSON object."""
    log, stream = logged("json")
    log.info("startup", grpc_addr=":9090", grpc_tls=False, replicas=3)
    fields = json.loads(stream.getvalue())
    assert fields.pop("time").endswith("Z")
    assert fields == {
        "level": "INFO",
        "msg": "startup",
        "grpc_addr": ":9090",
        "grpc_tls": False,
        "replicas": 3,
    }


def test_text_quotes_what_would_be_ambiguous() -> None:
    """Spaces, quotes, equals signs and line ends cannot forge fields or lines."""
    log, stream = logged("text")
    log.info("startup", grpc_addr=":9090", reason='a "b"=c\nlevel=ERROR', empty="")
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert "level=INFO msg=startup grpc_addr=:9090" in line
    assert 'reason="a \\"b\\"=c\\nlevel=ERROR" empty=""' in line


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["DEBUG", "INFO", "WARN", "ERROR"]),
        ("info", ["INFO", "WARN", "ERROR"]),
        ("warn", ["WARN", "ERROR"]),
        ("warning", ["WARN", "ERROR"]),
        ("error", ["ERROR"]),
    ],
)
def test_less_severe_events_are_dropped(level: str, shown: list[str]) -> None:
    """The level setting says which events are worth a line."""
    log, stream = logged("json", level)
    for write in (log.debug, log.info, log.warning, log.error):
        write("event")
    assert [json.loads(line)["level"] for line in stream.getvalue().splitlines()] == shown


def test_an_exception_brings_its_traceback_in_the_same_line() -> None:
    """A bug is one line too, with what somebody needs to find it."""
    log, stream = logged("json")
    try:
        int("broken")
    except ValueError:
        log.exception("page_failed", path="/metrics")
    fields = json.loads(stream.getvalue())
    assert fields["error"] == "ValueError: invalid literal for int() with base 10: 'broken'"
    assert "Traceback" in fields["stack"]
    assert fields["path"] == "/metrics"


def test_libraries_are_heard_from_warnings_on_and_named() -> None:
    """Their lines have the same form, and say whose they are."""
    _, stream = logged("json", "debug")
    logging.getLogger("asyncio").info("chatter")
    logging.getLogger("asyncio").warning("slow %s", "callback")
    (line,) = stream.getvalue().splitlines()
    fields = json.loads(line)
    assert (fields["msg"], fields["level"], fields["logger"]) == (
        "slow callback",
        "WARN",
        "asyncio",
    )


def test_answers_to_clients_that_have_gone_are_not_logged() -> None:
    """The gRPC core's complaint that it could not send is no fault of the server."""
    _, stream = logged("text")
    core = logging.getLogger("grpc._cython.cygrpc")
    for trouble in (grpc.aio.InternalError("batch"), RuntimeError("real")):
        core.error("raised in core", exc_info=(type(trouble), trouble, None))

    core.warning("Aborting method [%s] due to server stop.", b"/a/b")

    assert "batch" not in stream.getvalue()
    assert "Aborting" not in stream.getvalue()
    assert "real" in stream.getvalue()
