"""The groups of rows, and running one of them."""

from importlib import import_module

from benchmarks.options import Options
from benchmarks.row import Row

GROUPS = (
    "lookup",
    "ingest",
    "flatness",
    "clear",
    "memory",
    "sizing",
    "fingerprints",
    "resources",
    "route_cpu",
    "load",
    "picker",
    "prompts",
    "simulate",
    "bench_events",
    "producer",
)
"""Modules with a function ``run(options)`` that yields rows; each runs in a process of its own."""


def run_group(name: str, options: Options) -> list[Row]:
    """Run one group; what stops it becomes a row."""
    rows: list[Row] = []
    try:
        rows.extend(import_module(f"benchmarks.{name}").run(options))
    except Exception as error:  # noqa: BLE001 - one broken group must not hide the others
        rows.append(Row(what=f"{name} stopped", unit="", value=None, note=repr(error)))
    return rows
