"""What profiling costs: a message of a run with event rows against one without."""

from __future__ import annotations

from benchmarks.harness import KIB, Record, compare, named, sweep
from benchmarks.pairs import Task, titin

QUESTION = "One message between two programs in C, one way, of a run with `--trace`"
RIVAL = "titin without it"


def main(quick: bool) -> list[Record]:
    """Small messages, which pay most."""
    task = Task(largest=KIB)
    figures = sweep(3 if quick else 21, {"titin": titin(task, flags=["--trace"]), RIVAL: titin(task)})
    found = []
    for size in [0, KIB]:
        pairs = list(zip(figures["titin"][size], figures[RIVAL][size]))
        found.append(compare(QUESTION, named(size), pairs, rival=RIVAL, unit="µs", size=size))
    return found
