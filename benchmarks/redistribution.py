"""The time to move a distributed array from the ranks of one program to the ranks of another."""

from __future__ import annotations

from benchmarks import native
from benchmarks.harness import Record, beside_all, sweep

QUESTION = "A square array of doubles between two parallel programs, one way"

#: The cases of programs/redistribution.h, in the same order.
CASES = [
    "1024², rows to rows",
    "1024², rows to columns",
    "1024², block-cyclic rows to rows",
    "1024², rows to rows, 10 fields",
    "1024², rows to columns, 10 fields",
    "4096², rows to rows",
    "4096², rows to columns",
    "4096², block-cyclic rows to rows",
]
EXTENTS = [1024] * 5 + [4096] * 3
FIELDS = [1, 1, 1, 10, 10, 1, 1, 1]

#: The numbers of ranks of the two programs.
SIDES = [(1, 1), (2, 2), (1, 4), (4, 2)]

#: Titin's time is to be at most this share of the better rival's time.
TARGET = 0.9


def main(quick: bool) -> list[Record]:
    """Runs each side once with all cases in every round."""
    rounds = 2 if quick else 7
    found = []
    for senders, receivers in SIDES[1:2] if quick else SIDES:
        rivals = {name: by_hand(senders, receivers, how) for name, how in native.BY_HAND.items()}
        figures = sweep(rounds, {"titin": titin(senders, receivers)} | rivals)
        for number, case in enumerate(CASES):
            size = 8 * EXTENTS[number] ** 2 * FIELDS[number]
            name = f"{senders} to {receivers} ranks, {case}"
            times = {contender: of_case[number] for contender, of_case in figures.items()}
            found += beside_all(QUESTION, name, times, unit="µs", size=size, target=TARGET)
    return found


def titin(senders: int, receivers: int) -> native.Times:
    """The run of two instances, with a pair of conduits for each case."""
    program, numbers = native.parallel("redistribution_titin"), range(len(CASES))
    ports = f"o_i: [{', '.join(f'out{n}' for n in numbers)}], s: [{', '.join(f'in{n}' for n in numbers)}]"
    conduits = [f"one.out{n}: other.in{n}, other.out{n}: one.in{n}" for n in numbers]
    ranks = senders, receivers
    return native.coupled(native.parallel_pair(program, [native.RESULT], ranks, (ports, ports), conduits))


def by_hand(senders: int, receivers: int, how: str) -> native.Times:
    """The run of one MPI job with as many ranks in all."""
    program = native.rival("redistribution_mpi", "openmpi")
    return native.alone(*native.open_mpi(senders + receivers), program, senders, how, native.RESULT)
