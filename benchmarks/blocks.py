"""Coupled blocks: experiments 1 and 2 of the XpressSpace paper, as far as one machine can repeat them.

Arrays in two-dimensional blocks go from the ranks of one program to the ranks of another. In the first experiment an
array goes one way, with 16 MiB on each sending rank, whatever the number of ranks. In the second experiment two arrays
go at once, one each way, with the same size for every number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import native
from benchmarks.harness import MIB, Record, beside_all, sweep

WEAK = "16 MiB from each rank of one program to those of another, one way"
STRONG = "Two arrays between two programs, one each way at the same time"

#: Rows and columns of the grids of processes, of the first and of the second program.
Grids = tuple[tuple[int, int], tuple[int, int]]

#: Eight to one, and four to one, as in the paper.
WEAK_GRIDS = [((4, 2), (1, 1)), ((4, 4), (2, 1)), ((8, 4), (2, 2))]
STRONG_GRIDS = [((2, 2), (1, 1)), ((4, 2), (2, 1)), ((4, 4), (2, 2))]

#: Rows and columns of doubles on each sending rank.
BLOCK = (2048, 1024)
#: Rows and columns of both arrays: 128 and 256 MiB together.
WHOLE = [(4096, 2048), (4096, 4096)]

#: Exchanges of a run; the paper has 50. Ranks that have just started have neither caches nor cores in a steady state.
TRIPS = 25

#: Titin's time is to be at most this share of the better rival's time.
TARGET = 0.9


@dataclass(frozen=True)
class Task:
    """The measurement of one row of the table."""

    question: str
    extents: tuple[int, int]
    grids: Grids
    ways: int
    trips: int = TRIPS

    @property
    def ranks(self) -> tuple[int, int]:
        """The number of ranks of both programs."""
        return self.grids[0][0] * self.grids[0][1], self.grids[1][0] * self.grids[1][1]

    @property
    def bytes(self) -> int:
        """The bytes that one exchange moves."""
        return 8 * self.extents[0] * self.extents[1] * self.ways

    @property
    def case(self) -> str:
        """The name of the case in the tables."""
        return f"{self.ranks[0]} and {self.ranks[1]} ranks, {self.bytes // MIB} MiB"

    @property
    def words(self) -> list[object]:
        """The arguments of the programs."""
        return [*self.extents, *self.grids[0], *self.grids[1], self.trips, self.ways, native.RESULT]


def tasks() -> list[Task]:
    """The measurements of all rows."""
    return [one_way(WEAK, grids) for grids in WEAK_GRIDS] + [
        Task(STRONG, extents, grids, 2) for extents in WHOLE for grids in STRONG_GRIDS
    ]


def one_way(question: str, grids: Grids, trips: int = TRIPS) -> Task:
    """The measurement in which a block on each rank of the first program goes to the second program."""
    return Task(question, (BLOCK[0] * grids[0][0], BLOCK[1] * grids[0][1]), grids, 1, trips)


def main(quick: bool) -> list[Record]:
    """Runs titin and each rival once in every round."""
    rounds = 2 if quick else 7
    records = []
    for task in tasks()[:1] if quick else tasks():
        figures = sweep(
            rounds, {"titin": titin(task)} | {name: by_hand(task, how) for name, how in native.BY_HAND.items()}
        )
        times = {name: [time / 1000 for time in of_case[0]] for name, of_case in figures.items()}
        records += beside_all(task.question, task.case, times, unit="ms", target=TARGET)
    return records


def titin(task: Task) -> native.Times:
    """The run of two instances."""
    program, ports = native.parallel("blocks_titin"), ("o_i: out, s: in", "o_i: out, s: in")
    conduits = ["one.out: other.in", "other.out: one.in"]
    return native.coupled(native.parallel_pair(program, task.words, task.ranks, ports, conduits))


def by_hand(task: Task, how: str) -> native.Times:
    """The run of one MPI job with as many ranks in all."""
    program = native.rival("blocks_mpi", "openmpi")
    return native.alone(*native.open_mpi(sum(task.ranks)), program, *task.words, how)
