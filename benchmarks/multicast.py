"""What it takes to send one message to four receivers, until the last has answered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, MIB, Record, compare, named, run, scratch, stepping, sweep

QUESTION = "One message to 4 receivers, until the last has answered; 5 processes on 2 cores"
RECEIVERS = 4
LARGEST = 16 * MIB


def main(quick: bool) -> list[Record]:
    """All sizes in one run of each, in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    program = native.build("multicast_titin")
    receivers = range(1, RECEIVERS + 1)

    def titin() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            programs = [(program, [RECEIVERS, rank, share, LARGEST, folder / "times"]) for rank in [0, *receivers]]
            conduits = [f"c0.out: [{', '.join(f'c{rank}.in' for rank in receivers)}]"]
            conduits += [f"c{rank}.out: c0.in{rank - 1}" for rank in receivers]
            native.titin_run(stepping(programs, conduits), folder, cores=2)
            return native.times(folder / "times")

    def other(command: list[object]) -> Callable[[], dict[int, float]]:
        def once() -> dict[int, float]:
            with scratch() as name:
                folder = Path(name)
                words = [str(word).format(folder=folder) for word in command]
                run([*native.on_cores(2), *words, share, LARGEST, folder / "times"], folder)
                return native.times(folder / "times")

        return once

    rivals = {
        "Open MPI, MPI_Bcast, yielding": [
            *native.OPEN_MPI_YIELD,
            "-np",
            RECEIVERS + 1,
            native.rival("multicast_mpi", "openmpi"),
        ],
        "ZeroMQ ipc": [native.rival("multicast_zmq", "zmq"), RECEIVERS, "ipc://{folder}/socket"],
    }
    figures = sweep(rounds, {"titin": titin, **{name: other(command) for name, command in rivals.items()}})
    found = []
    for size in [0, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, LARGEST]:
        for rival in rivals:
            pairs = list(zip(figures["titin"][size], figures[rival][size]))
            found.append(compare(QUESTION, named(size), pairs, rival=rival, unit="µs", size=size))
    return found
