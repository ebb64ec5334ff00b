"""What it takes to move a distributed array from the ranks of one program to those of another."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from benchmarks import native
from benchmarks.harness import Record, compare, run, scratch, sweep

QUESTION = "A square array of doubles between two parallel programs, one way"

#: As in programs/redistribution.h.
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

#: Ranks of the two programs.
SIDES = [(1, 1), (2, 2), (1, 4), (4, 2)]

#: Of the time of an exchange by hand.
TARGET = 1.1


def main(quick: bool) -> list[Record]:
    """All cases in one run of each, in every round."""
    rounds = 2 if quick else 7
    found = []
    for senders, receivers in SIDES[1:2] if quick else SIDES:
        rival = "by hand, MPI_Alltoallv"
        contenders = {"titin": titin(senders, receivers), rival: by_hand(senders, receivers)}
        figures = sweep(rounds, contenders)
        for number, case in enumerate(CASES):
            pairs = list(zip(figures["titin"][number], figures[rival][number]))
            size = 8 * EXTENTS[number] ** 2 * FIELDS[number]
            name = f"{senders} to {receivers} ranks, {case}"
            found.append(compare(QUESTION, name, pairs, rival=rival, unit="µs", size=size, target=TARGET))
    return found


def titin(senders: int, receivers: int) -> Callable[[], dict[int, float]]:
    """Two instances of so many ranks."""
    program = native.parallel("redistribution_titin")

    def once() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            native.titin_run(model(program, senders, receivers, folder / "times"), folder)
            return native.times(folder / "times")

    return once


def crowded(ranks: int) -> bool:
    """Whether there are more ranks than cores, so that those that wait in MPI are told to yield."""
    return ranks > len(os.sched_getaffinity(0))


def by_hand(senders: int, receivers: int) -> Callable[[], dict[int, float]]:
    """One MPI job of as many ranks."""
    program = native.rival("redistribution_mpi", "openmpi")
    start = native.OPEN_MPI_YIELD if crowded(senders + receivers) else native.OPEN_MPI

    def once() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            run([*start, "-np", senders + receivers, program, senders, folder / "times"], folder)
            return native.times(folder / "times")

    return once


def model(program: Path, senders: int, receivers: int, result: Path) -> str:
    """Both programs, with a pair of conduits for each case."""
    numbers = range(len(CASES))
    ports = f"{{o_i: [{', '.join(f'out{n}' for n in numbers)}], s: [{', '.join(f'in{n}' for n in numbers)}]}}"
    conduits = ", ".join(f"one.out{n}: other.in{n}, other.out{n}: one.in{n}" for n in numbers)
    env = "{OMPI_MCA_mpi_yield_when_idle: '1'}" if crowded(senders + receivers) else "{}"
    programs = [
        f"  {name}: {{executable: {program}, args: ['{side}', {result}], execution_model: openmpi, env: {env}}}"
        for side, name in enumerate(("one", "other"))
    ]
    return "\n".join(
        [
            "ymmsl_version: v0.2",
            "description: For timing.",
            "models:",
            "  redistribution:",
            "    components:",
            f"      one: {{description: has rows, ports: {ports}, implementation: one}}",
            f"      other: {{description: has parts, ports: {ports}, implementation: other}}",
            f"    conduits: {{{conduits}}}",
            "programs:",
            *programs,
            f"resources: {{redistribution.one: {{mpi_processes: {senders}}}, "
            f"redistribution.other: {{mpi_processes: {receivers}}}}}",
            "",
        ]
    )
