"""The canal and the cavity in one piece, as two halves on one host, and as two halves at two sites that relays join by
a long line: figure 7 of the MUSCLE 2 paper (section 4.1).

The line is emulated (`sites`). The environment variable ``TITIN_DISTRIBUTED`` chooses lines by the milliseconds of
their round trips, as in ``2.1 15``; the records of other lines are kept.

The words are the paper's: T_mono, T_local and T_distr are the times of a step (an iteration there) of the three
scenarios, and the efficiencies are ε_local = T_mono / T_local and ε_distr = T_mono / T_distr. A record's ratio is the
other way round. The paper has no model of the overhead.

The hidden part of the line is a figure of this benchmark alone. Both halves send at the same time, and each needs for
its next step what the other one has sent. So a step has to wait for the line once, one way, which takes half of the
round trip. The part of this time that a half spends computing is hidden: 1 - (T_distr - T_local) / (half of the round
trip). The figure is below zero if two sites cost more than the line, as by the work of the relays. It is above one only
by chance, where other work of the machine has disturbed the runs on one host.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import canal, harness, native
from benchmarks.harness import ROOT, Figures, Record, compare, run, scratch, sweep
from benchmarks.sites import NAME, Relays, line, prepare, relays

#: The environment variable that chooses lines.
VARIABLE = "TITIN_DISTRIBUTED"
QUESTION = "A step of a model in two halves, on one host and at two sites, and in one piece"
HIDDEN = "What a step of two halves takes longer at two sites than on one host, beside half of the line's round trip"

#: The lines, by the milliseconds of a round trip; a quick run takes the first. The shortest and the longest are lines
#: of the MPWide paper.
LINES = [2.1, 15.0, 37.6]
CONTROL = "cubic"

#: The sizes: points per metre of the canal, and cells along a side of the cavity.
CANALS, CAVITIES = canal.ALL, [256, 512, 1024]
CAVITY = ROOT / "examples" / "cavity"
#: The steps of two runs of the cavity. The time of a step is their difference, so that start and end are left out.
STEPS = (20, 220)

MONO, LOCAL, DISTR = "T_mono", "T_local", "T_distr"
SCENARIOS = {LOCAL: "two halves, one host", DISTR: "two halves, two sites"}
PIECE = "one piece"

#: The ways of the canal: whether what crosses the seam is computed first.
WAYS = {"seam first": True, "seam last": False}

#: A function that makes a run, and gives the milliseconds of a step and what tells whether two states are the same.
Contender = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Problem:
    """A model of some size: the run in one piece, and for each way to compute the halves the run of them, on this host
    or at two sites."""

    name: str
    mono: Callable[[], Contender]
    halves: Mapping[str, Callable[[Relays | None], Contender]]


def main(quick: bool) -> list[Record]:
    """Measures the chosen lines, three times each as in the paper. Records of other lines are kept."""
    prepare()
    words = os.environ.get(VARIABLE, "").split()
    lines = [rtt for rtt in LINES if f"{rtt:g}" in words] if words else LINES[:1] if quick else LINES
    if not lines:
        raise SystemExit(f"{VARIABLE} chooses nothing; there are {', '.join(f'{rtt:g}' for rtt in LINES)}")
    found: list[Record] = [] if quick else harness.load("distributed")
    for rtt in lines:
        new = measure(rtt, problems(quick), 1 if quick else 3)
        found = [record for record in found if line_of(record) != line_of(new[0])] + new
    found.sort(key=lambda record: float(line_of(record).removesuffix(" ms")))
    show(found)
    return found


def problems(quick: bool) -> list[Problem]:
    """All models and sizes; one size of each for a quick run."""
    resolutions, sides = (CANALS[:1], CAVITIES[:1]) if quick else (CANALS, CAVITIES)
    return [*map(canal_of, resolutions), *map(cavity_of, sides)]


def canal_of(resolution: float) -> Problem:
    """The canal, in the two ways."""

    def halves(overlap: bool, running: Relays | None) -> Contender:
        return milliseconds(canal.canal(resolution, "fields", overlap=overlap, running=running))

    return Problem(
        f"canal, {resolution} points per metre",
        lambda: milliseconds(canal.canal(resolution, canal.WHOLE)),
        {way: functools.partial(halves, overlap) for way, overlap in WAYS.items()},
    )


def milliseconds(measured: Contender) -> Contender:
    """A run of the canal without its parts."""

    def once() -> dict[str, Any]:
        found = measured()
        return {"step": found["step"] / 1000, "state": found["state"]}

    return once


def cavity_of(side: int) -> Problem:
    """The cavity, in the way of its program alone: it sends what crosses the seam at the beginning of a step, and
    computes nothing before it has received what comes."""
    name = f"cavity, {side} by {side} cells"
    return Problem(name, lambda: cavity(side, ["whole"]), {"": lambda running: cavity(side, ["west", "east"], running)})


def cavity(side: int, blocks: Sequence[str], running: Relays | None = None) -> Contender:
    """The cavity, of one block or two. Gives the slope of the time over the two numbers of steps, and the last fields
    of the longer run."""
    program = cavity_program()

    def once() -> dict[str, Any]:
        seconds, state = [], ""
        for steps in STEPS:
            text = cavity_model(program, side, steps, blocks)
            if running:
                kept = [f"{name}_file" for name in blocks]
                text += f"titin:\n{running.places([blocks[0], *kept], [blocks[1]])}"
            with scratch() as name:
                folder = Path(name)
                (running.titin_run if running else native.titin_run)(text, folder)
                seconds.append(together(folder / "run", blocks))
                state = fields(folder / "run", blocks)
        (short, long), (few, many) = seconds, STEPS
        return {"step": 1000 * (long - short) / (many - few), "state": state}

    return once


@functools.cache
def cavity_program() -> Path:
    """The cavity's program, built."""
    subprocess.run(["make", "-s", "-C", CAVITY, f"TITIN={native.TITIN}", "build/cavity"], check=True)
    return CAVITY / "build" / "cavity"


def cavity_model(executable: Path, side: int, steps: int, blocks: Sequence[str]) -> str:
    """The cavity in one block, or in two side by side; every block has a core of its own."""
    cores = sorted(os.sched_getaffinity(0)) * 2
    ports = {"whole": "", "west": "o_i: to_east, s: from_east, ", "east": "o_i: to_west, s: from_west, "}
    conduits = [f"{name}.fields: {name}_file.in" for name in blocks]
    settings: dict[str, Any] = {"cells": side, "reynolds": 100.0, "lid": 0.1, "steps": steps}
    settings |= {"x0": 0.0, "x1": 1.0, "y0": 0.0, "y1": 1.0}
    settings |= {f"{name}_file.file": f"{name}.npy" for name in blocks}
    if len(blocks) == 2:
        settings |= {"west.x1": 0.5, "east.x0": 0.5}
        conduits += ["west.to_east: east.from_west", "east.to_west: west.from_east"]
    text = ["ymmsl_version: v0.2", "description: For timing.", "models:", "  blocks:", "    components:"]
    for name in blocks:
        block = f"description: a block, ports: {{{ports[name]}o_f: fields}}, implementation: pinned_{name}"
        text += [f"      {name}: {{{block}}}"]
        text += [f"      {name}_file: {{description: its end, ports: {{f_init: in}}, implementation: titin.sink}}"]
    text += [f"    conduits: {{{', '.join(conduits)}}}", "programs:"]
    for name, core in zip(blocks, cores):
        words = json.dumps(["-c", str(core), str(executable)])
        text += [f"  pinned_{name}: {{executable: taskset, args: {words}}}"]
    return "\n".join([*text, f"settings: {json.dumps(settings)}"]) + "\n"


def together(folder: Path, blocks: Sequence[str]) -> float:
    """The seconds from when the last block has joined the run until the last one has left it."""
    profile = json.loads(run([native.TITIN, "profile", folder, "--json"], folder))
    found = [instance for instance in profile["instances"] if instance["name"] in blocks]
    return max(one["start"] + one["total"] for one in found) - max(one["start"] for one in found)


def fields(folder: Path, blocks: Sequence[str]) -> str:
    """A digest of the fields of the whole cavity."""
    import numpy as np

    parts = [np.load(folder / "instances" / f"{name}_file" / "workdir" / f"{name}.npy") for name in blocks]
    return hashlib.sha256(np.concatenate(parts, axis=-1).tobytes()).hexdigest()


def measure(rtt: float, chosen: Sequence[Problem], rounds: int) -> list[Record]:
    """All problems with one line. In every round all scenarios of a problem are run, each once."""
    found = []
    with (
        scratch() as name,
        line(NAME, rtt, 0, CONTROL) as ends,
        relays(Path(name) / "relays", ends, CONTROL) as running,
    ):
        for problem in chosen:
            contenders = {MONO: problem.mono()}
            for way, halves in problem.halves.items():
                contenders |= {f"{LOCAL} {way}": halves(None), f"{DISTR} {way}": halves(running)}
            found += records(rtt, problem, times(problem, sweep(rounds, contenders)))
    return found


def times(problem: Problem, figures: Figures) -> dict[str, list[float]]:
    """The times of a step by contender, if all runs have ended in the same bits."""
    states = {state for figure in figures.values() for state in figure["state"]}
    if len(states) > 1:
        raise SystemExit(f"{problem.name}: the runs of {', '.join(figures)} do not all end in the same bits")
    return {contender: figure["step"] for contender, figure in figures.items()}


def records(rtt: float, problem: Problem, steps: Mapping[str, Sequence[float]]) -> list[Record]:
    """The records of a problem with a line."""
    found = []
    for way in problem.halves:
        local, distr = steps[f"{LOCAL} {way}"], steps[f"{DISTR} {way}"]
        case = named(rtt, problem.name, way)
        for scenario, ours in ((LOCAL, local), (DISTR, distr)):
            pairs = list(zip(ours, steps[MONO], strict=True))
            found.append(compare(QUESTION, f"{case}, {SCENARIOS[scenario]}", pairs, rival=PIECE, unit="ms"))
        more = [(far - near, rtt / 2) for near, far in zip(local, distr, strict=True)]
        found.append(compare(HIDDEN, case, more, rival="half of the round trip", unit="ms"))
    return found


def named(rtt: float, problem: str, way: str) -> str:
    """A case: the line, the problem, and the way to compute the halves."""
    return f"{rtt:g} ms: {problem}{way and ', '}{way}"


def line_of(record: Record) -> str:
    """The line of a record."""
    return record.case.partition(":")[0]


#: The columns of `rows`.
COLUMNS = ["line", "model", MONO, LOCAL, DISTR, "ε_local", "ε_distr", "hidden part of the line"]


def rows(found: Sequence[Record]) -> list[list[str]]:
    """The figures as the paper has them: a row for each line, problem and way. Efficiencies and the hidden part are
    medians over the rounds; beside the hidden part stand its least and its most."""
    by_case = {(record.question, record.case): record for record in found}
    cells = []
    for record in found:
        if record.question != HIDDEN:
            continue
        local, distr = (by_case[QUESTION, f"{record.case}, {scenario}"] for scenario in SCENARIOS.values())
        rtt, _, model = record.case.partition(": ")
        times = [f"{time:.3g} ms" for time in (distr.rival, local.titin, distr.titin)]
        low, high = record.spread["ratio"]
        hidden = f"{1 - record.ratio:.2f} [{1 - high:.2f}, {1 - low:.2f}]"
        cells.append([rtt, model, *times, f"{1 / local.ratio:.2f}", f"{1 / distr.ratio:.2f}", hidden])
    return cells


def show(found: Sequence[Record]) -> None:
    """Prints the rows as a table."""
    table = [COLUMNS, *rows(found)]
    widths = [max(map(len, column)) for column in zip(*table)]
    for row in table:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
