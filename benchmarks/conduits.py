"""The cost of a message while many conduits are open between two programs in C."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import native
from benchmarks.harness import Record, compare, stepping, sweep

QUESTION = "One empty message where many conduits are open, taken by receive_any, one way"
COUNTS = [1, 10, 100, 1000]


def main(quick: bool) -> list[Record]:
    """Runs every number of conduits once in every round."""
    rounds, trips = (2, 1000) if quick else (15, 5000)
    program = native.build("conduits_titin")

    def titin(count: int) -> native.Times:
        words = [count, trips, native.RESULT]
        conduits = [*(f"c0.out{i}: c1.in{i}" for i in range(count)), "c1.back: c0.back"]
        return native.coupled(stepping([(program, [0, *words]), (program, [1, *words])], conduits))

    mpi, zmq = native.rival("conduits_mpi", "openmpi"), native.rival("conduits_zmq", "zmq")

    def tags(count: int) -> native.Times:
        return native.alone(*native.OPEN_MPI, "-np", 2, mpi, count, trips, native.RESULT)

    def sockets(count: int) -> native.Times:
        return native.alone(zmq, count, "ipc://{folder}/s", trips, native.RESULT)

    rivals = {"Open MPI, tags": every(tags), "ZeroMQ ipc, sockets": every(sockets)}
    figures = sweep(rounds, {"titin": every(titin), **rivals})
    found = []
    for count in COUNTS:
        for rival in rivals:
            pairs = list(zip(figures["titin"][count], figures[rival][count]))
            case = f"{count} conduit{'s' if count > 1 else ''}"
            found.append(compare(QUESTION, case, pairs, rival=rival, unit="µs"))
    return found


def every(contender: Callable[[int], native.Times]) -> native.Times:
    """Runs all numbers of conduits, one after the other."""
    runs = [contender(count) for count in COUNTS]
    return lambda: {count: time for run in runs for count, time in run().items()}
