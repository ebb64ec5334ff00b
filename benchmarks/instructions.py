"""How many instructions a small message takes, sent and received, between two programs in C."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, Record, compare, named, run, scratch, stepping

QUESTION = "Instructions for one message between two programs in C, shared memory"
SIZES = [0, 64, KIB]
#: The difference of the two is the steady state.
TRIPS = (200, 600)

#: Starts both sides of the counted ping-pong: for a call, a size, a number of trips and a folder.
Start = Callable[[str, int, int, Path], None]


def main(quick: bool) -> list[Record]:
    """One run of each: the counts of two runs differ by less than one in a hundred."""
    found = []
    for size in SIZES:
        rivals: dict[str, Start] = {"MPICH": partial(ranks, native.MPICH, "mpich")}
        if size < KIB:
            # From 512 B on, MPI_Send of Open MPI waits for progress of the receiver, so it has no count of its own.
            rivals["Open MPI"] = partial(ranks, native.OPEN_MPI, "openmpi")
        for call in ("send", "receive"):
            ours = counted(titin, call, size)
            found += [
                compare(
                    QUESTION,
                    f"{call}, {named(size)}",
                    [(ours, counted(start, call, size))],
                    rival=name,
                    unit="instructions",
                    size=size,
                )
                for name, start in rivals.items()
            ]
    return found


def counted(start: Start, call: str, size: int) -> float:
    """The instructions of one call in the steady state, on average over both sides."""
    few, many = (total(start, call, size, trips) for trips in TRIPS)
    return (many - few) / 2 / (TRIPS[1] - TRIPS[0])


def total(start: Start, call: str, size: int, trips: int) -> int:
    """The instructions of this call in a whole run, of both sides together."""
    with scratch() as name:
        folder = Path(name)
        start(call, size, trips, folder)
        found = [re.search(r"^totals: (\d+)", path.read_text(), re.MULTILINE) for path in folder.glob("*.out")]
    counts = [int(match[1]) for match in found if match]
    if len(counts) != 2:
        raise SystemExit(f"callgrind has counted {len(counts)} sides in place of 2")
    return sum(counts)


def callgrind(call: str, folder: Path, side: object) -> list[object]:
    """What goes before the command of one side."""
    flags = ["--tool=callgrind", "--collect-atstart=no", f"--toggle-collect=counted_{call}"]
    return ["valgrind", *flags, f"--callgrind-out-file={folder}/{side}.out"]


def titin(call: str, size: int, trips: int, folder: Path) -> None:
    """Two instances of titin."""
    program = native.build("counted_titin")
    sides = []
    for side in (0, 1):
        command, *words = callgrind(call, folder, side)
        sides.append((str(command), [*words, program, side, size, trips, folder / "count"]))
    native.titin_run(stepping(sides), folder)


def ranks(launcher: Sequence[str], flavour: str, call: str, size: int, trips: int, folder: Path) -> None:
    """Two ranks of an MPI, each under callgrind."""
    program = native.rival("counted_mpi", flavour)
    run([*launcher, "-np", 2, *callgrind(call, folder, "%p"), program, size, trips, folder / "count"], folder)
