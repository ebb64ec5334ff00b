"""A run on one host by this build, beside an earlier build of titin: whether what was added since costs those who do
not use it.

The environment variable ``TITIN_EARLIER`` names the Python of an environment in which the earlier build is installed.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from benchmarks.harness import PROGRAMS, Record, compare, named, run, scratch, stepping, sweep

VARIABLE = "TITIN_EARLIER"
START = "A run of two Python programs on one host, start to end, beside an earlier build"
MESSAGE = "A message between two Python programs on one host, one way, beside an earlier build"
MEMORY = "Private memory during a run on one host, beside an earlier build"

SIZES = [8, 1 << 10, 64 << 10, 1 << 20]
TRIPS = 2000
#: What the earlier build's figures may be exceeded by.
NEAR = 1.02

#: Milliseconds and bytes, by what they are of.
Figure = dict[str, float]


def main(quick: bool) -> list[Record]:
    """Compares this build with the earlier one."""
    earlier = os.environ.get(VARIABLE)
    if not earlier:
        raise SystemExit(f"{VARIABLE} names no Python of an environment with an earlier build of titin")
    contenders = {"now": lambda: ping_pong(Path(sys.executable)), "earlier": lambda: ping_pong(Path(earlier))}
    figures = sweep(5 if quick else 101, contenders)

    def record(question: str, case: str, name: str, unit: str) -> Record:
        pairs = list(zip(figures["now"][name], figures["earlier"][name], strict=True))
        return compare(question, case, pairs, rival="earlier build", unit=unit, target=NEAR)

    return [
        record(START, f"with {TRIPS} messages of each size", "start", "ms"),
        *(record(MESSAGE, named(size), str(size), "µs") for size in SIZES),
        record(MEMORY, "manager and guard", "titin", "kB"),
        record(MEMORY, "one program", "program", "kB"),
    ]


def ping_pong(python: Path) -> Figure:
    """The figures of a run by the build of a Python."""
    program = str(PROGRAMS / "releases_pair.py")
    with scratch() as name:
        folder = Path(name)
        asks = [program, "asks", ",".join(map(str, SIZES)), TRIPS, folder / "figures"]
        (folder / "pair.ymmsl").write_text(stepping([(python, asks), (python, [program, "answers"])]))
        begin = time.perf_counter()
        run([python.parent / "titin", "run", "pair.ymmsl", "--run-dir", folder / "run"], folder)
        seconds = time.perf_counter() - begin
        rows = dict(line.split() for line in (folder / "figures").open())
    times = {size: 1e6 * float(rows[size]) for size in map(str, SIZES)}
    return {"start": 1e3 * seconds} | times | {of: float(rows[of]) / 1e3 for of in ("titin", "program")}
