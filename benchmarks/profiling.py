"""The cost of profiling: a message with the counters that every run has, and with event rows, each beside a run
without."""

from __future__ import annotations

from benchmarks.harness import KIB, Record, compare, named, sweep
from benchmarks.pairs import Task, titin

COUNTERS = "One message between two programs in C, one way, with the counters that every run has"
TRACE = "One message between two programs in C, one way, of a run with `--trace`"


def main(quick: bool) -> list[Record]:
    """Times small messages, where the share of profiling is largest. Many rounds show a difference of a twentieth."""
    task = Task(largest=KIB)
    nothing = "muscle_profile_level: none"
    contenders = {
        "counters": titin(task),
        "nothing": titin(task, settings=nothing),
        "rows": titin(task, flags=["--trace"]),
    }
    figures = sweep(9 if quick else 101, contenders)
    found = []
    for question, ours, theirs, rival, target in [
        (COUNTERS, "counters", "nothing", f"titin, {nothing}", 1.05),
        (TRACE, "rows", "counters", "titin without it", None),
    ]:
        for size in [0, KIB]:
            pairs = list(zip(figures[ours][size], figures[theirs][size]))
            aim = target if size == 0 else None
            found.append(compare(question, named(size), pairs, rival=rival, unit="µs", size=size, target=aim))
    return found
