"""Runs the benchmarks: ``python -m benchmarks [--quick] [NAME ...]``."""

from __future__ import annotations

import argparse
import time

from benchmarks import (
    adoption,
    blocks,
    bmi,
    canal,
    check,
    conduits,
    copying,
    death,
    distributed,
    files,
    harness,
    instructions,
    lines,
    many,
    message,
    multicast,
    nbody,
    octree,
    papers,
    paths,
    profiling,
    pull,
    python_pair,
    rate,
    redistribution,
    releases,
    ring,
    schedule,
    senders,
    small_fields,
    start,
    streams,
    toysmp,
)

QUESTIONS = {
    "message": message.main,
    "rate": rate.main,
    "instructions": instructions.main,
    "multicast": multicast.main,
    "conduits": conduits.main,
    "senders": senders.main,
    "redistribution": redistribution.main,
    "small_fields": small_fields.main,
    "toysmp": toysmp.main,
    "canal": canal.main,
    "schedule": schedule.main,
    "ring": ring.main,
    "many": many.main,
    "profiling": profiling.main,
    "python_pair": python_pair.main,
    "bmi": bmi.main,
    "adoption": adoption.main,
    "start": start.main,
    "death": death.main,
    "check": check.main,
    "files": files.main,
    "streams": streams.main,
    "toysmp_ranks": toysmp.more,
    "octree": octree.main,
    "canal_sizes": canal.sizes,
    "blocks": blocks.main,
    "pull": pull.main,
    "lines": lines.main,
    "distributed": distributed.main,
    "nbody": nbody.main,
    "paths": paths.main,
    "copying": copying.main,
    "releases": releases.main,
}

#: Benchmarks that run only if named on the command line, and for ``make papers``.
APART = {
    "streams",
    "toysmp_ranks",
    "octree",
    "canal_sizes",
    "blocks",
    "pull",
    "lines",
    "distributed",
    "nbody",
    "paths",
    "copying",
    "releases",
}


def measure(name: str, *, quick: bool) -> float:
    """Answers one question and keeps the records; returns the seconds that the benchmark took."""
    begin = time.monotonic()
    records = QUESTIONS[name](quick=quick)
    took = time.monotonic() - begin
    harness.save(name, records, quick=quick, took=took)
    return took


def main() -> None:
    """Runs the named benchmarks, by default nearly all, and writes the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join(QUESTIONS)}; by default all but {', '.join(APART)}"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a result")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(QUESTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(QUESTIONS)}")
    took = {}
    for name in arguments.names or [name for name in QUESTIONS if name not in APART]:
        print(name, flush=True)
        took[name] = measure(name, quick=arguments.quick)
        print(f"  in {took[name]:.0f} s", flush=True)
    print(f"in all {sum(took.values()):.0f} s: {', '.join(f'{name} {time:.0f}' for name, time in took.items())}")
    if not arguments.quick:
        harness.table()
        papers.write()


if __name__ == "__main__":
    main()
