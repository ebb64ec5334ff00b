"""What the steps of three coupled parallel programs take whose fields go there and back."""

from __future__ import annotations

import functools
import importlib.util
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import native
from benchmarks.harness import ROOT, Figures, Record, compare, run, scratch, sweep

FOLDER = ROOT / "miniapps" / "toysmp"

#: What is told of a step, and under which question.
EXCHANGE = "The exchanges of a step of ToySMP, both ways"
STEP = "A step of ToySMP: three components, and their exchanges"
THERE = "The exchanges of a step of ToySMP, from compA and compC to compB"
BACK = "The exchanges of a step of ToySMP, from compB to compA and compC"

#: The paper's grid, and a small one, where what counts is how often something is sent: the steps of a run.
EXTENT, SMALL = 1024, 32
STEPS = {EXTENT: 12, SMALL: 500}
WAYS = ["separate", "aggregated"]

#: Of each component.
RANKS = [1, 2, 4, 8]

#: Ten fields each way between two pairs of components.
BYTES = 4 * 10 * 8 * EXTENT**2

#: Rivals, and how the program for them calls the way in which they exchange.
STRAIGHT = "by hand, MPI_Isend, no packing"
RIVALS = {native.PACKED: "alltoallv", STRAIGHT: "isend"}


def main(quick: bool) -> list[Record]:
    """A few ranks, both rivals."""
    rounds = 2 if quick else 6
    found = []
    for ranks, extent in [(1, EXTENT)] if quick else [(1, EXTENT), (2, EXTENT), (2, SMALL)]:
        figures = measure(ranks, extent, rounds, list(RIVALS))
        for rival in RIVALS:
            found += records(figures, ranks, extent, rival, {EXCHANGE: "exchange", STEP: "step"})
    return found


def more(quick: bool) -> list[Record]:
    """The experiment of the paper, as far as one machine goes."""
    rounds = 2 if quick else 5
    found = []
    for ranks in RANKS[:1] if quick else RANKS:
        figures = measure(ranks, EXTENT, rounds, list(RIVALS))
        for rival in RIVALS:
            found += records(figures, ranks, EXTENT, rival, {EXCHANGE: "exchange"})
            # Not in the table of all benchmarks, which has no sizes like this one.
            found += records(figures, ranks, EXTENT, rival, {STEP: "step", THERE: "there", BACK: "back"}, size=BYTES)
    return found


def case(ranks: int, way: str, extent: int = EXTENT) -> str:
    """How the records call it."""
    return f"{extent}², {ranks} {'rank' if ranks == 1 else 'ranks'} each, ten fields {way}"


def measure(ranks: int, extent: int, rounds: int, rivals: Sequence[str]) -> Figures:
    """Both ways of titin and its rivals, in turn."""
    contenders = {"titin": titin(ranks, extent)} | {name: by_hand(ranks, extent, RIVALS[name]) for name in rivals}
    return sweep(rounds, contenders)


def records(
    figures: Figures, ranks: int, extent: int, rival: str, parts: dict[str, str], size: int | None = None
) -> list[Record]:
    """A record of each question for each way."""
    found = []
    for question, part in parts.items():
        for way in WAYS:
            pairs = list(zip(figures["titin"][way, part], figures[rival][way, part]))
            found.append(compare(question, case(ranks, way, extent), pairs, rival=rival, unit="ms", size=size))
    return found


def titin(ranks: int, extent: int) -> Callable[[], dict[Any, float]]:
    """The mini-app, with Open MPI."""
    build()

    def once(way: str) -> dict[Any, float]:
        with scratch() as name:
            folder = Path(name)
            files = [FOLDER / f"{part}.ymmsl" for part in (way, "toysmp", "openmpi")]
            (folder / "this.ymmsl").write_text(resources(ranks, extent))
            run([native.TITIN, "run", *files, "this.ymmsl", "--run-dir", folder / "run"], folder)
            return medians(way, [folder / "run" / "instances" / end / "workdir" / "times.csv" for end in "abc"])

    return lambda: once(WAYS[0]) | once(WAYS[1])


@functools.cache
def build() -> None:
    """The mini-app's programs, all of them: titin may be another one than the last time."""
    native.packages()
    run(["make", "-s", "-B", f"TITIN={native.TITIN}", "MPI=openmpi"], FOLDER)


def by_hand(ranks: int, extent: int, how: str) -> Callable[[], dict[Any, float]]:
    """The same in one MPI job."""
    program = native.rival("toysmp_mpi", "openmpi")
    start = native.open_mpi(3 * ranks)

    def once(way: str) -> dict[Any, float]:
        with scratch() as name:
            folder = Path(name)
            run([*start, program, ranks, ranks, extent, extent, STEPS[extent], way, how], folder)
            return medians(way, [folder / f"{end}.csv" for end in "abc"])

    return lambda: once(WAYS[0]) | once(WAYS[1])


def resources(ranks: int, extent: int) -> str:
    """What the description leaves open."""
    counts = ", ".join(f"toysmp.{name}: {{mpi_processes: {ranks}}}" for name in "abc")
    settings = f"{{nx: {extent}, ny: {extent}, steps: {STEPS[extent]}}}"
    return f"ymmsl_version: v0.2\nsettings: {settings}\nresources: {{{counts}}}\n"


def medians(way: str, files: Sequence[Path]) -> dict[Any, float]:
    """Of each part of the steps, by the files of compA, compB and compC."""
    found = plot().steps(*files)
    return {(way, part): statistics.median(1000 * step[part] for step in found) for part in found[0]}


def plot() -> Any:
    """The mini-app's own plot.py, which knows what the times mean."""
    spec = importlib.util.spec_from_file_location("toysmp_plot", FOLDER / "plot.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
