"""What a small message costs in a stream that goes one way, between two programs in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, Record, compare, named, run, scratch, stepping, sweep

QUESTION = "One of many small messages in a row, one way, between two programs in C"
SIZES = [0, 64, 256, KIB]


def main(quick: bool) -> list[Record]:
    """All sizes in one run of each, in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    program = native.build("pair_titin")
    rivals = {
        "Open MPI": [*native.OPEN_MPI, "-np", 2, native.rival("pair_mpi", "openmpi")],
        "MPICH": [*native.MPICH, "-np", 2, native.rival("pair_mpi", "mpich")],
        "ZeroMQ ipc": [native.rival("pair_zmq", "zmq"), "ipc://{folder}/socket"],
        "raw socket": [native.rival("pair_tcp", "plain")],
    }

    def titin() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            task = ["view", "stream", 0, share, KIB, folder / "times"]
            native.titin_run(stepping([(program, [0, *task]), (program, [1, *task])]), folder)
            return native.times(folder / "times")

    def other(command: list[object]) -> Callable[[], dict[int, float]]:
        def once() -> dict[int, float]:
            with scratch() as name:
                folder = Path(name)
                words = [str(word).format(folder=folder) for word in command]
                run([*words, "stream", 0, share, KIB, folder / "times"], folder)
                return native.times(folder / "times")

        return once

    figures = sweep(rounds, {"titin": titin, **{name: other(command) for name, command in rivals.items()}})
    found = []
    for size in SIZES:
        for rival in rivals:
            pairs = list(zip(figures["titin"][size], figures[rival][size]))
            found.append(compare(QUESTION, named(size), pairs, rival=rival, unit="µs", size=size))
    return found
