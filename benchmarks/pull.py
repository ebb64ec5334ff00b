"""Pulling the latest version: Cache-Pull of the XpressSpace paper (its section 5.3 and figure 6) on one machine.

One program makes versions of an array at its own pace and keeps the latest. Another, slower program pulls the latest
version at its own pace. Measured are the time of a pull, and the cost of keeping a version. Blocks are as in `blocks`:
16 MiB on each sending rank, whatever the number of ranks.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import native
from benchmarks.blocks import Task, one_way
from benchmarks.harness import Record, compare, sweep

PULL = "A pull of the latest version, 16 MiB from each rank of one program to those of another"
KEEP = "What keeping such a version costs the program that makes it"

#: The grids of processes of the first and of the second program.
GRIDS = [((1, 1), (1, 1)), ((2, 2), (1, 1)), ((4, 2), (2, 1))]

#: The number of versions, and the pauses after each version and after each pull, in milliseconds.
VERSIONS = 120
PAUSES = (5, 20)

#: The number of versions that titin keeps for the receiver.
KEPT = 2

RIVAL = "by hand, MPI_Get"


def tasks() -> list[Task]:
    """The measurements of all grids."""
    return [one_way(PULL, grids, VERSIONS) for grids in GRIDS]


def main(quick: bool) -> list[Record]:
    """Runs titin and the rival once in every round."""
    rounds = 2 if quick else 7
    records = []
    for task in tasks()[:1] if quick else tasks():
        figures = sweep(rounds, {"titin": titin(task), RIVAL: by_hand(task)})
        # The programs number their lines in this order.
        for number, question in enumerate((PULL, KEEP)):
            pairs = list(zip(figures["titin"][number], figures[RIVAL][number]))
            pairs = [(ours / 1000, theirs / 1000) for ours, theirs in pairs]
            records.append(compare(question, task.case, pairs, rival=RIVAL, unit="ms"))
    return records


def titin(task: Task) -> native.Times:
    """The run of two instances."""
    return native.coupled(model(native.parallel("pull_titin"), task))


def model(program: Path, task: Task) -> str:
    """The model, in which the second program pulls."""
    words = [*task.words, *PAUSES]
    pair = native.parallel_pair(program, words, task.ranks, ("o_i: out", "s: in"), ["one.out: other.in"])
    return pair + f"titin: {{fields: {{one.out: {{mode: pull, versions: {KEPT}}}}}}}\n"


def by_hand(task: Task) -> native.Times:
    """The run of one MPI job with as many ranks in all."""
    program = native.rival("pull_mpi", "openmpi")
    return native.alone(*native.open_mpi(sum(task.ranks)), program, *task.words, *PAUSES)
