"""The time to send one message to four receivers, until the last receiver has answered."""

from __future__ import annotations

from benchmarks import native
from benchmarks.harness import KIB, MIB, Record, compare, named, stepping, sweep

QUESTION = "One message to 4 receivers, until the last has answered; 5 processes on 2 cores"
RECEIVERS = 4
LARGEST = 16 * MIB


def main(quick: bool) -> list[Record]:
    """Runs each side once with all sizes in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    program, words = native.build("multicast_titin"), [share, LARGEST, native.RESULT]
    receivers = range(1, RECEIVERS + 1)
    programs = [(program, [RECEIVERS, rank, *words]) for rank in [0, *receivers]]
    conduits = [f"c0.out: [{', '.join(f'c{rank}.in' for rank in receivers)}]"]
    conduits += [f"c{rank}.out: c0.in{rank - 1}" for rank in receivers]
    mpi, zmq = native.rival("multicast_mpi", "openmpi"), native.rival("multicast_zmq", "zmq")
    start = [*native.OPEN_MPI_YIELD, "-np", RECEIVERS + 1]
    rivals = {
        "Open MPI, MPI_Bcast, yielding": native.alone(*start, mpi, *words, cores=2),
        "ZeroMQ ipc": native.alone(zmq, RECEIVERS, "ipc://{folder}/socket", *words, cores=2),
    }
    figures = sweep(rounds, {"titin": native.coupled(stepping(programs, conduits), cores=2), **rivals})
    found = []
    for size in [0, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, LARGEST]:
        for rival in rivals:
            pairs = list(zip(figures["titin"][size], figures[rival][size]))
            found.append(compare(QUESTION, named(size), pairs, rival=rival, unit="µs", size=size))
    return found
