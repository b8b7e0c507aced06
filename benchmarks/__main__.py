"""Command line: run all groups or one, print the table, write JSON or Markdown."""

import argparse
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from benchmarks.groups import GROUPS, run_group
from benchmarks.machine import describe, slowness
from benchmarks.options import Options
from benchmarks.render import as_json, as_markdown, as_text
from benchmarks.row import Row, Verdict


def main(arguments: list[str]) -> int:
    """Run the command; the exit code is 1 if a target was missed or a group stopped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", choices=GROUPS)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, for a look")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the results page")
    parsed = parser.parse_args(arguments)
    machine = describe()
    command = shlex.join(["python", "-m", "benchmarks", *arguments])
    for name, value in machine.items():
        print(f"{name}: {value}")
    slower = slowness()
    results = _run_all(parsed.only or GROUPS, Options(quick=parsed.quick), slower)
    if parsed.json:
        parsed.json.write_text(as_json(results, machine, command), encoding="utf-8")
    if parsed.markdown:
        page = as_markdown(results, machine, command, slower)
        parsed.markdown.write_text(page, encoding="utf-8")
    verdicts = [row.verdict for rows in results.values() for row in rows]
    print("\n" + ", ".join(f"{verdicts.count(kind)} {kind}" for kind in Verdict if kind != "-"))
    return int(Verdict.MISSED in verdicts or Verdict.SKIPPED in verdicts)


def _run_all(
    names: list[str] | tuple[str, ...], options: Options, slower: float
) -> dict[str, list[Row]]:
    results: dict[str, list[Row]] = {}
    for name in names:
        started = perf_counter()
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            results[name] = alone.submit(run_group, name, options).result()
        text = as_text(results[name], slower)
        print(f"\n{name} ({perf_counter() - started:.0f} s)\n{text}", flush=True)
    return results


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
