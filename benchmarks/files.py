"""The cost of a message through files, one way, on disk and in memory, beside files written and renamed by hand."""

from __future__ import annotations

from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, Record, compare, named, sweep
from benchmarks.pairs import Task, files, other, titin

SIZES = [0] + [KIB << power for power in range(15)]
QUESTION = "One message between two programs in C through files, one way"
RIVAL = "files by hand, renamed; inotify"
PLACES = {"disk": native.FOLDER, "memory": Path("/dev/shm")}


def main(quick: bool) -> list[Record]:
    """Runs each side in both places once in every round."""
    rounds, share = (2, 64) if quick else (11, 16)
    task = Task(share=share, largest=SIZES[-1])
    native.FOLDER.mkdir(parents=True, exist_ok=True)
    contenders = {}
    for place, folder in PLACES.items():
        contenders[place] = titin(task, medium="file", folder=folder)
        contenders[f"{place}, by hand"] = other(task, files(folder))
    figures = sweep(rounds, contenders)
    return [
        compare(
            QUESTION,
            f"{place}, {named(size)}",
            list(zip(figures[place][size], figures[f"{place}, by hand"][size], strict=True)),
            rival=RIVAL,
            unit="µs",
            size=size,
        )
        for place in PLACES
        for size in SIZES
    ]
