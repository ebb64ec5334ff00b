"""The time of a small field between two parallel programs, where the cost of each call decides."""

from __future__ import annotations

from benchmarks import native
from benchmarks.harness import KIB, Record, beside_all, sweep

QUESTION = "A field of 1 KiB between two parallel programs in C, rows to columns, one way"

#: The number of ranks of each program.
RANKS = [1, 2]

#: The number of fields that go one by one before they come back.
FIELDS = [1, 100]

#: How often all fields go there and back, by the number of fields, after a tenth as many for warming up: with 1000,
#: more than the 61 messages of each conduit that titin times at first.
ROUND_TRIPS = {1: 10000, 100: 1000}

#: Titin's time is to be at most this multiple of the better rival's time.
TARGET = 1.5


def main(quick: bool) -> list[Record]:
    """Runs titin and each rival once in every round."""
    rounds = 3 if quick else 13
    found = []
    for ranks in RANKS:
        for fields in FIELDS:
            words = ["timed", fields, ROUND_TRIPS[fields], native.RESULT]
            pair = native.field_pair(native.parallel("small_field_titin"), words, ranks, fields)
            rivals = {"Open MPI": [*native.open_mpi(2 * ranks), native.rival("small_field_mpi", "openmpi")]}
            # More ranks of MPICH than cores take milliseconds for a field: a rank that waits does not yield.
            if not native.crowded(2 * ranks):
                rivals["MPICH"] = [*native.MPICH, "-np", 2 * ranks, native.rival("small_field_mpi", "mpich")]
            contenders = {f"{native.TYPED}, {name}": native.alone(*start, *words) for name, start in rivals.items()}
            figures = sweep(rounds, {"titin": native.coupled(pair)} | contenders)
            what = "one field" if fields == 1 else f"one of {fields} fields"
            times = {name: of_case[fields] for name, of_case in figures.items()}
            case = f"{ranks} and {ranks} ranks, {what}"
            found += beside_all(QUESTION, case, times, unit="µs", size=KIB, target=TARGET)
    return found
