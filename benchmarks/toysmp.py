"""The time of the steps of three coupled parallel programs, whose fields go there and back."""

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

#: The parts of a step, each a question.
EXCHANGE = "The exchanges of a step of ToySMP, both ways"
STEP = "A step of ToySMP: three components, and their exchanges"
THERE = "The exchanges of a step of ToySMP, from compA and compC to compB"
BACK = "The exchanges of a step of ToySMP, from compB to compA and compC"

#: The paper's grid, and a small grid, where the number of messages decides; the number of steps of a run with each.
EXTENT, SMALL = 1024, 32
STEPS = {EXTENT: 12, SMALL: 500}
WAYS = ["separate", "aggregated"]

#: The numbers of ranks of each component.
RANKS = [1, 2, 4, 8]

#: The bytes of a step: ten fields each way between two pairs of components.
BYTES = 4 * 10 * 8 * EXTENT**2

#: The rivals, with the name of each way of exchange in the rivals' program.
STRAIGHT = "by hand, MPI_Isend, no packing"
RIVALS = {native.PACKED: "alltoallv", STRAIGHT: "isend"}


def main(quick: bool) -> list[Record]:
    """Measures a few ranks, beside both rivals."""
    rounds = 2 if quick else 6
    found = []
    for ranks, extent in [(1, EXTENT)] if quick else [(1, EXTENT), (2, EXTENT), (2, SMALL)]:
        figures = measure(ranks, extent, rounds, list(RIVALS))
        for rival in RIVALS:
            found += records(figures, ranks, extent, rival, {EXCHANGE: "exchange", STEP: "step"})
    return found


def more(quick: bool) -> list[Record]:
    """Measures the experiment of the paper, as far as one machine can repeat it."""
    rounds = 2 if quick else 5
    found = []
    for ranks in RANKS[:1] if quick else RANKS:
        figures = measure(ranks, EXTENT, rounds, list(RIVALS))
        for rival in RIVALS:
            found += records(figures, ranks, EXTENT, rival, {EXCHANGE: "exchange"})
            # These records have a size that the table of all benchmarks leaves out; docs/papers.md shows them.
            found += records(figures, ranks, EXTENT, rival, {STEP: "step", THERE: "there", BACK: "back"}, size=BYTES)
    return found


def case(ranks: int, way: str, extent: int = EXTENT) -> str:
    """The name of a case in the records."""
    return f"{extent}², {ranks} {'rank' if ranks == 1 else 'ranks'} each, ten fields {way}"


def measure(ranks: int, extent: int, rounds: int, rivals: Sequence[str]) -> Figures:
    """Times both ways of titin and of its rivals, in turn."""
    contenders = {"titin": titin(ranks, extent)} | {name: by_hand(ranks, extent, RIVALS[name]) for name in rivals}
    return sweep(rounds, contenders)


def records(
    figures: Figures, ranks: int, extent: int, rival: str, parts: dict[str, str], size: int | None = None
) -> list[Record]:
    """A record for each question and each way."""
    found = []
    for question, part in parts.items():
        for way in WAYS:
            pairs = list(zip(figures["titin"][way, part], figures[rival][way, part]))
            found.append(compare(question, case(ranks, way, extent), pairs, rival=rival, unit="ms", size=size))
    return found


def titin(ranks: int, extent: int) -> Callable[[], dict[Any, float]]:
    """The runs of the mini-app, with Open MPI."""
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
    """Builds all programs of the mini-app anew: titin may have changed since the last build."""
    native.packages()
    run(["make", "-s", "-B", f"TITIN={native.TITIN}", "MPI=openmpi"], FOLDER)


def by_hand(ranks: int, extent: int, how: str) -> Callable[[], dict[Any, float]]:
    """The runs of one MPI job that does the same by hand."""
    program = native.rival("toysmp_mpi", "openmpi")
    start = native.open_mpi(3 * ranks)

    def once(way: str) -> dict[Any, float]:
        with scratch() as name:
            folder = Path(name)
            run([*start, program, ranks, ranks, extent, extent, STEPS[extent], way, how], folder)
            return medians(way, [folder / f"{end}.csv" for end in "abc"])

    return lambda: once(WAYS[0]) | once(WAYS[1])


def resources(ranks: int, extent: int) -> str:
    """The part of the description that depends on the case: settings, and numbers of ranks."""
    counts = ", ".join(f"toysmp.{name}: {{mpi_processes: {ranks}}}" for name in "abc")
    settings = f"{{nx: {extent}, ny: {extent}, steps: {STEPS[extent]}}}"
    return f"ymmsl_version: v0.2\nsettings: {settings}\nresources: {{{counts}}}\n"


def medians(way: str, files: Sequence[Path]) -> dict[Any, float]:
    """The median of each part of the steps, from the files of compA, compB and compC."""
    found = plot().steps(*files)
    return {(way, part): statistics.median(1000 * step[part] for step in found) for part in found[0]}


def plot() -> Any:
    """The mini-app's own plot.py, which computes the parts of a step."""
    spec = importlib.util.spec_from_file_location("toysmp_plot", FOLDER / "plot.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
