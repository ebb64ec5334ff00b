"""Runs the benchmarks: ``python -m benchmarks [--quick] [NAME ...]``."""

from __future__ import annotations

import argparse

from benchmarks import check, death, harness, python_pair, start

QUESTIONS = {
    "python_pair": python_pair.main,
    "start": start.main,
    "death": death.main,
    "check": check.main,
}


def main() -> None:
    """Runs what was asked for and writes the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(QUESTIONS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a result")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(QUESTIONS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(QUESTIONS)}")
    for name in arguments.names or QUESTIONS:
        print(name)
        harness.save(name, QUESTIONS[name](quick=arguments.quick))
    harness.table()


main()
