"""The cost of a small message in a stream that goes one way, between two programs in C."""

from __future__ import annotations

from benchmarks.harness import KIB, Record, beside_all, named, sweep
from benchmarks.pairs import Task, mpis, other, raw_socket, titin, zeromq

QUESTION = "One of many small messages in a row, one way, between two programs in C"
SIZES = [0, 64, 256, KIB]

#: By size, the most that titin's time is to be as a multiple of the fastest rival's.
TARGETS = {0: 1.5, KIB: 0.8}


def main(quick: bool) -> list[Record]:
    """Runs each side once with all sizes in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    task = Task("stream", share=share, largest=KIB)
    rivals = mpis() | {"ZeroMQ ipc": zeromq("ipc"), "raw socket": raw_socket()}
    figures = sweep(rounds, {"titin": titin(task), **{name: other(task, command) for name, command in rivals.items()}})
    found = []
    for size in SIZES:
        times = {name: of_size[size] for name, of_size in figures.items()}
        found += beside_all(QUESTION, named(size), times, unit="µs", size=size, target=TARGETS.get(size))
    return found
