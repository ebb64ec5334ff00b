"""The cost of a message where eight programs in C send to one as fast as they can."""

from __future__ import annotations

from benchmarks import native
from benchmarks.harness import Record, beside_all, stepping, sweep

QUESTION = "Empty messages in a row from 8 senders to one receiver; 9 processes on 2 cores"
SENDERS = 8

#: Titin's time is to be at most this multiple of the better rival's time.
TARGET = 1.5


def main(quick: bool) -> list[Record]:
    """Runs titin and each rival once in every round."""
    rounds, count = (5, 10000) if quick else (15, 20000)
    program, words = native.build("senders_titin"), [count, native.RESULT]
    numbers = range(1, SENDERS + 1)
    programs = [(program, [SENDERS, number, *words]) for number in [0, *numbers]]
    conduits = [f"c0.out: [{', '.join(f'c{number}.in' for number in numbers)}]"]
    conduits += [f"c{number}.out: c0.in{number - 1}" for number in numbers]
    launchers = {"Open MPI, yielding": (native.OPEN_MPI_YIELD, "openmpi"), "MPICH": (native.MPICH, "mpich")}
    rivals = {
        name: native.alone(*launcher, "-np", SENDERS + 1, native.rival("senders_mpi", flavour), *words, cores=2)
        for name, (launcher, flavour) in launchers.items()
    }
    figures = sweep(rounds, {"titin": native.coupled(stepping(programs, conduits), cores=2), **rivals})
    times = {name: found[SENDERS] for name, found in figures.items()}
    return beside_all(QUESTION, f"{SENDERS} senders, 0 B", times, unit="µs", target=TARGET)
