"""The cost of a small message in a stream that goes one way, between two programs in C."""

from __future__ import annotations

from benchmarks.harness import KIB, Record, compare, named, sweep
from benchmarks.pairs import Task, mpis, other, raw_socket, titin, zeromq

QUESTION = "One of many small messages in a row, one way, between two programs in C"
SIZES = [0, 64, 256, KIB]


def main(quick: bool) -> list[Record]:
    """Runs each side once with all sizes in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    task = Task("stream", share=share, largest=KIB)
    rivals = mpis() | {"ZeroMQ ipc": zeromq("ipc"), "raw socket": raw_socket()}
    figures = sweep(rounds, {"titin": titin(task), **{name: other(task, command) for name, command in rivals.items()}})
    found = []
    for size in SIZES:
        for rival in rivals:
            pairs = list(zip(figures["titin"][size], figures[rival][size]))
            found.append(compare(QUESTION, named(size), pairs, rival=rival, unit="µs", size=size))
    return found
