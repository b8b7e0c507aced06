"""``inferencecache doctor``: find out why an engine's blocks do not reach the index."""

import sys

import typer

from inferencecache.cli.options import settings_command
from inferencecache.settings.doctor import DoctorCommandSettings


def register(app: typer.Typer) -> None:
    """Add the command to *app*."""
    app.command("doctor")(settings_command(DoctorCommandSettings, doctor))


def doctor(settings: DoctorCommandSettings) -> None:
    """Check an engine's event stream, replay and metrics from outside, changing nothing.

    Exit code 0: nothing above INFO; 1: a WARN; 2: a FAIL.
    """
    from inferencecache.app.doctor import run_doctor
    from inferencecache.cli.doctor_output import as_json, as_table, as_text

    diagnosis = run_doctor(settings.doctor, settings.decode)
    is_colored = sys.stdout.isatty() and not settings.output.no_color
    match settings.output.form:
        case "json":
            text = as_json(diagnosis)
        case "table":
            text = as_table(diagnosis)
        case _:
            title = f"inferencecache doctor: engine {settings.doctor.engine_endpoint}"
            text = as_text(diagnosis, title, is_colored=is_colored)
    sys.stdout.write(text)
    raise typer.Exit(diagnosis.exit_code)
