"""What profiling costs: a message of a run with event rows against one without."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, Record, compare, named, scratch, stepping, sweep

QUESTION = "One message between two programs in C, one way, of a run with `--trace`"
RIVAL = "titin without it"


def main(quick: bool) -> list[Record]:
    """Small messages, which pay most."""
    rounds = 3 if quick else 21
    program = native.build("pair_titin")

    def once(*flags: str) -> Callable[[], dict[int, float]]:
        def run_it() -> dict[int, float]:
            with scratch() as name:
                folder = Path(name)
                task = ["view", "ping", 0, 1, KIB, folder / "times"]
                native.titin_run(stepping([(program, [0, *task]), (program, [1, *task])]), folder, *flags)
                return native.times(folder / "times")

        return run_it

    figures = sweep(rounds, {"titin": once("--trace"), RIVAL: once()})
    found = []
    for size in [0, KIB]:
        pairs = list(zip(figures["titin"][size], figures[RIVAL][size]))
        found.append(compare(QUESTION, named(size), pairs, rival=RIVAL, unit="µs", size=size))
    return found
