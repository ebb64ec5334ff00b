"""How many instructions a small message and a small field take, sent and received, between two programs in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, Record, compare, named, run, scratch, stepping

QUESTION = "Instructions for one message between two programs in C, shared memory"
FIELD = "Instructions for one field of 1 KiB between two parallel programs in C, rows to columns, shared memory"
SIZES = [0, 64, KIB]
#: The number of ranks of each program, and the number of fields that take turns.
FIELDS = [(1, 1), (1, 100), (2, 1), (2, 100)]
#: Titin is to take at most this many times the instructions of MPI.
TARGET = 1.5
#: The numbers of trips of two runs. The difference of the runs is the steady state.
TRIPS = (200, 600)
#: The same for 100 fields. A trip is one field, so each has gone 70 times before the counted trips: titin times the
#: first 61 messages of a conduit, which costs more.
TRIPS_OF_MANY = (7000, 7400)
CALLS = ("send", "receive")

#: Starts all ranks of the counted ping-pong. The arguments are a call, a number of trips and a folder.
Start = Callable[[str, int, Path], None]


def main(quick: bool) -> list[Record]:
    """Makes one run of each, since the counts of two runs differ by less than one in a hundred."""
    return [*messages(), *fields()]


def messages() -> list[Record]:
    """Counts one message between two instances."""
    found = []
    for size in SIZES:
        rivals: dict[str, Start] = {"MPICH": partial(ranks, native.MPICH, "mpich", size)}
        if size < KIB:
            # From 512 B on, MPI_Send of Open MPI waits for the receiver, so its own instructions cannot be told apart.
            rivals["Open MPI"] = partial(ranks, native.OPEN_MPI, "openmpi", size)
        for call in CALLS:
            ours = counted(partial(titin, size), call, 2)
            found += [
                compare(
                    QUESTION,
                    f"{call}, {named(size)}",
                    [(ours, counted(start, call, 2))],
                    rival=name,
                    unit="instructions",
                    size=size,
                )
                for name, start in rivals.items()
            ]
    return found


def fields() -> list[Record]:
    """Counts one field, over all ranks of a side together."""
    found = []
    for count, several in FIELDS:
        what = "one field" if several == 1 else f"one of {several} fields in turn"
        for call in CALLS:
            trips = TRIPS if several == 1 else TRIPS_OF_MANY
            counts = [counted(partial(start, count, several), call, 2 * count, trips) for start in (titin_field, typed)]
            found.append(
                compare(
                    FIELD,
                    f"{call}, {count} and {count} ranks, {what}",
                    [(counts[0], counts[1])],
                    rival="MPICH, MPI_Isend, derived types",
                    unit="instructions",
                    target=TARGET,
                )
            )
    return found


def counted(start: Start, call: str, processes: int, trips: tuple[int, int] = TRIPS) -> float:
    """The instructions of one call in the steady state, on average over both sides."""
    few, many = (total(start, call, number, processes) for number in trips)
    return (many - few) / 2 / (trips[1] - trips[0])


def total(start: Start, call: str, trips: int, processes: int) -> int:
    """The instructions of this call in a whole run, over all ranks of both sides."""
    with scratch() as name:
        folder = Path(name)
        start(call, trips, folder)
        found = [re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE) for path in folder.glob("*.out")]
    counts = [int(match[1]) for match in found if match]
    if len(counts) != processes:
        raise SystemExit(f"callgrind has counted {len(counts)} processes in place of {processes}")
    return sum(counts)


def callgrind(call: str, folder: Path) -> list[object]:
    """The command that runs a process under callgrind, to be put before the process's own command."""
    flags = ["--tool=callgrind", "--collect-atstart=no", f"--toggle-collect=counted_{call}"]
    return ["valgrind", *flags, f"--callgrind-out-file={folder}/%p.out"]


def titin(size: int, call: str, trips: int, folder: Path) -> None:
    """Runs two instances of titin."""
    program = native.build("counted_titin")
    command, *flags = callgrind(call, folder)
    sides = [(str(command), [*flags, program, side, size, trips, folder / "count"]) for side in (0, 1)]
    native.titin_run(stepping(sides), folder)


def ranks(launcher: Sequence[str], flavour: str, size: int, call: str, trips: int, folder: Path) -> None:
    """Runs two ranks of an MPI, each under callgrind."""
    program = native.rival("counted_mpi", flavour)
    run([*launcher, "-np", 2, *callgrind(call, folder), program, size, trips, folder / "count"], folder)


def titin_field(count: int, several: int, call: str, trips: int, folder: Path) -> None:
    """Runs two instances of ``count`` ranks, which pass ``several`` fields to and fro in turn."""
    program = native.parallel("small_field_titin")
    counting = folder / "counting"
    counting.write_text(f'#!/bin/sh\nexec {" ".join(map(str, callgrind(call, folder)))} {program} "$@"\n')
    counting.chmod(0o755)
    task = ["counted", several, trips, folder / "count"]
    native.titin_run(native.field_pair(counting, task, count, several), folder)


def typed(count: int, several: int, call: str, trips: int, folder: Path) -> None:
    """Runs one MPI job that exchanges the same fields by hand."""
    program = native.rival("small_field_mpi", "mpich")
    launcher = [*native.MPICH, "-np", 2 * count, *callgrind(call, folder)]
    run([*launcher, program, "counted", several, trips, folder / "count"], folder)
