"""An N-body code whole, in parts on one host, and in two parts at two sites that a long line joins: figures 7 to 10 of
the MPWide paper (section 5).

The code is ``miniapps/nbody``; paths join its parts, and the line is emulated (`sites`). The environment variable
``TITIN_NBODY`` chooses parts of the measurement: ``local``, or the milliseconds of a line's round trip, as in ``2.1
273``; ``273/0`` is the longest line without loss. ``TITIN_NBODY_ROUNDS`` allows for a shorter measurement. The records
of other parts are kept.

Where parts are far apart, one of them waits long in one step and not at all in the next, and the other one the other
way round. So the times of a step are averaged over the parts first; then the median over the steps is taken. The
average over the steps stands beside it. A lost packet holds up a step by a round trip or more, and TCP sends slower for
some steps after it. Over the longest line, where TCP takes long to be as fast again, that may be half of all steps. So
this line is measured without loss, too.

A step needs one message of the other part that this part waits for, which takes half of the round trip; the bytes of
the step take their time by the rate. The sum is the bound of the communication, if nothing of it is hidden behind
computing.
"""

from __future__ import annotations

import csv
import functools
import hashlib
import itertools
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import harness, native
from benchmarks.harness import ROOT, Figures, Record, compare, run, scratch, sweep
from benchmarks.sites import NAME, RATE, Site, line, prepare

#: The environment variables that choose parts, and the number of rounds.
VARIABLE, ROUNDS = "TITIN_NBODY", "TITIN_NBODY_ROUNDS"
QUESTION = "A step of an N-body code in parts that paths join, beside the whole on as many cores"
COMMUNICATION = "Communication between two sites in a step of an N-body code, beside its bound"
SHARE = "Communication between the parts of an N-body code, as a share of the step"
WAITING = "Waiting for messages between the parts of an N-body code, as a share of the step"
AVERAGE = "A step of an N-body code in parts on average, beside the median"

WHOLE, BY_MPI = "the whole, one MPI program", "the same parts, one MPI program"
BOUND, STEP, MEDIAN = "half of the round trip, and bytes by the rate", "the step", "the median"
#: The ratio of communication to its bound, for parts that have as much to do as each other and a core each.
TO_BOUND = 1.1

LOCAL = "one host"

CODE = ROOT / "miniapps" / "nbody"
#: A run that takes longer hangs.
PATIENCE = 300.0
PORTS = itertools.count(4900)

#: A function that makes a run, and gives milliseconds and bytes of a step and the bits of the result.
Contender = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Problem:
    """A run: its particles along an edge, its steps, and for each part its share of the work and its ranks."""

    name: str
    particles: int
    shares: Sequence[int] = (1, 1)
    steps: int = 20
    #: The scale factor at the end.
    end: float = 0.3
    #: The first steps, which are not counted: TCP sends slowly at first.
    skipped: int = 5

    @property
    def ranks(self) -> Sequence[int]:
        """The ranks of the parts: by the work, so that all ranks have as much of it."""
        return self.shares

    def words(self) -> list[str]:
        """The options of the code that all of its programs have."""
        numbers = {"particles": self.particles, "steps": self.steps, "to": self.end}
        return [*(f"--{name}={number}" for name, number in numbers.items()), "--quiet"]

    def parts(self) -> list[str]:
        """The options by which the box is divided."""
        return [f"--parts={len(self.shares)}", f"--shares={':'.join(map(str, self.shares))}"]


HALVES, UNEQUAL = Problem("32³, halves", 32), Problem("32³, 3:1", 32, (3, 1))
LARGE = Problem("64³, halves", 64, steps=8, end=0.04, skipped=3)
THIRDS = Problem("32³, thirds", 32, (1, 1, 1))


@dataclass(frozen=True)
class Line:
    """A line between the sites: milliseconds of a round trip, percent of loss, and the problems to measure."""

    name: str
    rtt: float
    loss: float
    problems: Sequence[Problem]


#: The line of figures 9 and 10.
LONGEST = 273.0
#: The lines of figures 7, 8 and 9, by the word that chooses them.
LINES = {f"{rtt:g}": Line(f"{rtt:g} ms", rtt, 0.01, [HALVES, UNEQUAL, LARGE]) for rtt in (2.1, 37.6, LONGEST)}
LINES |= {f"{LONGEST:g}/0": Line(f"{LONGEST:g} ms without loss", LONGEST, 0, [HALVES])}
CONTROL = "cubic"


def main(quick: bool) -> list[Record]:
    """Measures the chosen parts. Records of other parts are kept."""
    parts: dict[str, Callable[[bool], list[Record]]] = {"local": local}
    parts |= {word: functools.partial(far, between) for word, between in LINES.items()}
    return harness.in_parts("nbody", VARIABLE, parts, "local 37.6" if quick else "", quick)


def local(quick: bool) -> list[Record]:
    """All parts on one host, beside the whole and beside the same parts in one MPI program."""
    found = []
    for problem in [HALVES] if quick else [HALVES, UNEQUAL, LARGE, THIRDS]:
        with scratch() as name:
            folder = Path(name)
            contenders: dict[str, Contender] = {
                "titin": functools.partial(by_paths, problem, folder),
                WHOLE: functools.partial(by_mpi, problem, folder, []),
            }
            if problem is not LARGE:
                contenders[BY_MPI] = functools.partial(by_mpi, problem, folder, divided(problem))
            found += records(LOCAL, problem, same_bits(problem, sweep(rounds(quick), contenders)))
    return found


def far(between: Line, quick: bool) -> list[Record]:
    """Two sites, with a line between them."""
    prepare()
    found = []
    for problem in [HALVES] if quick else between.problems:
        with scratch() as name, line(NAME, between.rtt, between.loss, CONTROL) as ends:
            folder = Path(name)
            contenders = {
                "titin": functools.partial(by_paths, problem, folder, ends),
                WHOLE: functools.partial(by_mpi, problem, folder, []),
            }
            figures = same_bits(problem, sweep(rounds(quick), contenders))
        found += records(between.name, problem, figures, between.rtt)
    return found


def rounds(quick: bool) -> int:
    """The number of rounds."""
    return int(os.environ.get(ROUNDS, 1 if quick else 3))


def records(where: str, problem: Problem, figures: Figures, rtt: float | None = None) -> list[Record]:
    """The records of a problem with a line, or on one host."""
    case, ours = f"{where}: {problem.name}", figures["titin"]
    beside: list[tuple[str, str, str, Sequence[float], float | None]]
    beside = [(QUESTION, "step", rival, theirs["step"], None) for rival, theirs in figures.items() if rival != "titin"]
    if rtt is not None:
        bound = [rtt / 2 + milliseconds(amount) for amount in ours["bytes"]]
        target = TO_BOUND if len(set(problem.shares)) == 1 else None
        beside.append((COMMUNICATION, "communication", BOUND, bound, target))
    beside += [
        (SHARE, "communication", STEP, ours["step"], None),
        (WAITING, "waiting", STEP, ours["step"], None),
        (AVERAGE, "average", MEDIAN, ours["step"], None),
    ]
    return [
        compare(question, case, list(zip(ours[name], theirs, strict=True)), rival=rival, unit="ms", target=target)
        for question, name, rival, theirs, target in beside
    ]


def milliseconds(amount: float) -> float:
    """The time of so many bytes by the rate of the line."""
    return 8 * amount / (1000 * RATE)


def same_bits(problem: Problem, figures: Figures) -> Figures:
    """The figures, if all runs have ended in the same bits."""
    if len({state for figure in figures.values() for state in figure["state"]}) > 1:
        raise SystemExit(f"{problem.name}: the runs of {', '.join(figures)} do not all end in the same bits")
    return figures


@functools.cache
def program() -> Path:
    """The code, built."""
    native.packages()
    subprocess.run([ROOT / "tools" / "packages.sh", "/usr/include/fftw3.h:libfftw3-dev"], check=True)
    subprocess.run(["make", "-s", "-C", CODE, f"TITIN={native.TITIN}", "MPI=openmpi"], check=True)
    return CODE / "build" / "openmpi" / "nbody"


def launcher(ranks: int, of_all: int) -> list[str]:
    """The command that starts a program of so many ranks; ranks yield where there are more of them than cores."""
    if ranks == 1:
        return []
    has_cores = of_all <= len(os.sched_getaffinity(0))
    return [*(native.OPEN_MPI if has_cores else native.OPEN_MPI_YIELD), "-n", str(ranks)]


def divided(problem: Problem) -> list[str]:
    """The options of one MPI program that is all parts."""
    return [*problem.parts(), f"--ranks={','.join(map(str, problem.ranks))}"]


def by_mpi(problem: Problem, folder: Path, words: Sequence[str]) -> dict[str, Any]:
    """Runs the code as one MPI program."""
    executable, ranks = program(), sum(problem.ranks)
    output = ["--out=0.npy", "--steps-file=0.csv"]
    together([[*launcher(ranks, ranks), str(executable), *problem.words(), *words, *output]], folder)
    return figures_of(folder, problem, 1)


def by_paths(problem: Problem, folder: Path, ends: Sequence[Site] = ()) -> dict[str, Any]:
    """Runs each part as a program: all on this host, or each at its site."""
    executable, count = program(), len(problem.shares)
    if not (folder / "key").exists():
        run([native.TITIN, "path", "key", "key"], folder)
    addresses = [f"{ends[part].host if ends else '127.0.0.1'}:{next(PORTS)}" for part in range(count)]
    commands = []
    for part, ranks in enumerate(problem.ranks):
        words = [*(ends[part].front if ends else []), *launcher(ranks, sum(problem.ranks)), str(executable)]
        words += [*problem.words(), *problem.parts(), f"--part={part}", "--key=key", f"--steps-file={part}.csv"]
        # Of two parts the first listens and the second opens; three and more are a ring.
        if count > 2 or part == 0:
            words.append(f"--listen={addresses[part]}")
        if count > 2 or part == 1:
            words.append(f"--open={addresses[(part + 1) % count]}")
        if part == 0:
            words.append("--out=0.npy")
        commands.append(words)
    together(commands, folder)
    return figures_of(folder, problem, count)


def together(commands: Sequence[Sequence[str]], folder: Path) -> None:
    """Runs commands at the same time to their ends. If one of them fails or hangs, all end, and their output is
    shown."""
    logs = [folder / f"{number}.log" for number in range(len(commands))]
    processes = []
    try:
        for command, log in zip(commands, logs, strict=True):
            with log.open("wb") as file:
                processes.append(subprocess.Popen(command, cwd=folder, stdout=file, stderr=file))
        deadline = time.monotonic() + PATIENCE
        while any(process.poll() is None for process in processes):
            has_failed = any(process.poll() for process in processes)
            if has_failed or time.monotonic() > deadline:
                break
            time.sleep(0.05)
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
            process.wait()
    if any(process.returncode for process in processes):
        text = "\n".join(f"{' '.join(command)}\n{log.read_text()}" for command, log in zip(commands, logs, strict=True))
        raise SystemExit(f"a program has failed, or has run for more than {PATIENCE:.0f} s:\n{text}")


def figures_of(folder: Path, problem: Problem, count: int) -> dict[str, Any]:
    """What a run of so many programs gives: milliseconds and bytes of a step, and a digest of the result."""
    tables = [read(folder / f"{part}.csv") for part in range(count)]
    state = hashlib.sha256((folder / "0.npy").read_bytes()).hexdigest()
    return step_figures(tables, problem.skipped) | {"state": state}


def read(path: Path) -> list[dict[str, float]]:
    """The steps of a part."""
    with path.open() as file:
        return [{name: float(text) for name, text in row.items()} for row in csv.DictReader(file)]


def step_figures(tables: Sequence[Sequence[Mapping[str, float]]], skipped: int) -> dict[str, float]:
    """The figures of a step after the first ones, from a table of steps for each part."""

    def of_steps(name: str) -> list[float]:
        return [statistics.mean(row[name] for row in rows) for rows in list(zip(*tables, strict=True))[skipped:]]

    return {
        "step": 1000 * statistics.median(of_steps("seconds")),
        "average": 1000 * statistics.mean(of_steps("seconds")),
        "communication": 1000 * statistics.median(of_steps("communication")),
        "waiting": 1000 * statistics.median(of_steps("waiting")),
        "bytes": statistics.median(of_steps("received")),
    }


#: The columns of `rows`.
COLUMNS = [
    "line",
    "particles, parts",
    "a step of the whole",
    "a step of the parts by MPI",
    "a step of the parts by paths (ratio to the whole)",
    "on average",
    "communication in a step",
    "share of the step",
    "of that waiting, share of the step",
    "bound of the communication (ratio)",
]


def rows(found: Sequence[Record]) -> list[list[str]]:
    """A row for each line and problem, the host first. Shares and ratios are medians over the rounds."""
    by_case: dict[str, dict[tuple[str, str], Record]] = {}
    for record in found:
        by_case.setdefault(record.case, {})[record.question, record.rival_name] = record
    order = [LOCAL, *(between.name for between in LINES.values())]
    cells = []
    for case in sorted(by_case, key=lambda case: order.index(case.partition(":")[0])):
        where, _, problem = case.partition(": ")
        records = by_case[case]
        step, share = records[QUESTION, WHOLE], records[SHARE, STEP]
        alike, bound = records.get((QUESTION, BY_MPI)), records.get((COMMUNICATION, BOUND))
        cells.append(
            [
                where,
                problem,
                f"{step.rival:.3g} ms",
                f"{alike.rival:.3g} ms" if alike else "",
                f"{step.titin:.3g} ms ({step.ratio:.3g})",
                f"{records[AVERAGE, MEDIAN].titin:.3g} ms",
                f"{share.titin:.3g} ms",
                percent(share.ratio),
                percent(records[WAITING, STEP].ratio),
                f"{bound.rival:.3g} ms ({bound.ratio:.3g})" if bound else "",
            ]
        )
    return cells


def percent(share: float) -> str:
    """A share in percent."""
    return f"{100 * share:.2g} %"
