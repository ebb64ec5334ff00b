"""What a message costs where many conduits are open between two programs in C."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks import native
from benchmarks.harness import Record, compare, run, scratch, stepping, sweep

QUESTION = "One empty message where many conduits are open, taken by receive_any, one way"
COUNTS = [1, 10, 100, 1000]


def main(quick: bool) -> list[Record]:
    """All numbers of conduits, a run for each, in every round."""
    rounds, trips = (2, 1000) if quick else (15, 5000)
    program = native.build("conduits_titin")

    def titin() -> dict[int, float]:
        found: dict[int, float] = {}
        for count in COUNTS:
            with scratch() as name:
                folder = Path(name)
                arguments = [count, trips, folder / "times"]
                conduits = [*(f"c0.out{i}: c1.in{i}" for i in range(count)), "c1.back: c0.back"]
                model = stepping([(program, [0, *arguments]), (program, [1, *arguments])], conduits)
                native.titin_run(model, folder)
                found |= native.times(folder / "times")
        return found

    def other(command: Callable[[int, Path], list[object]]) -> Callable[[], dict[int, float]]:
        def once() -> dict[int, float]:
            found: dict[int, float] = {}
            for count in COUNTS:
                with scratch() as name:
                    folder = Path(name)
                    run([*command(count, folder), trips, folder / "times"], folder)
                    found |= native.times(folder / "times")
            return found

        return once

    mpi, zmq = native.rival("conduits_mpi", "openmpi"), native.rival("conduits_zmq", "zmq")
    rivals = {
        "Open MPI, tags": other(lambda count, _: [*native.OPEN_MPI, "-np", 2, mpi, count]),
        "ZeroMQ ipc, sockets": other(lambda count, folder: [zmq, count, f"ipc://{folder}/s"]),
    }
    figures = sweep(rounds, {"titin": titin, **rivals})
    found = []
    for count in COUNTS:
        for rival in rivals:
            pairs = list(zip(figures["titin"][count], figures[rival][count]))
            case = f"{count} conduit{'s' if count > 1 else ''}"
            found.append(compare(QUESTION, case, pairs, rival=rival, unit="µs"))
    return found
