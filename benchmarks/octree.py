"""LB and POST_DATA of miniapps/octree as one MPI job and as two jobs with titin: start-up and whole run, as figure 6 of
the paper on h3-Open-UTIL/MP."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import native
from benchmarks.harness import ROOT, Record, compare, run, scratch, sweep

FOLDER = ROOT / "miniapps" / "octree"

START = "LB and POST_DATA, from the command to LB's first step"
WHOLE = "LB and POST_DATA, the whole run"
ONE_JOB = "by hand, one Open MPI job"

#: Ranks of both programs together, half of them each.
RANKS = [2, 4, 8, 16, 32, 64]

#: The paper makes 5,000 steps on many cores.
STEPS, EVERY = 400, 5
SETTINGS: dict[str, Any] = {
    "level_m": 4,
    "level_n": 6,
    "radius": 0.15,
    "bulge": 0.25,
    "bulge_length": 0.5,
    "viscosity": 0.04,
    "reynolds": 10.0,
    "swing": 3.0,
    "period": 800,
    "steps": STEPS,
    "from": EVERY,
    "every": EVERY,
    "probes": [[0.05, 0.5, 0.5], [0.5, 0.5, 0.5]],
}

MODEL = """\
ymmsl_version: v0.2
description: For timing.
models:
  octree:
    matching_timelines: {{lb: post}}
    components:
      lb: {{description: the solver, ports: {{o_i: flow, o_f: times report statistics}}, implementation: lb}}
      post: {{description: statistics, ports: {{s: flow, o_f: report statistics}}, implementation: post}}
      times: {{description: its times, ports: {{f_init: in}}, implementation: titin.sink}}
      report: {{description: its results, ports: {{f_init: in}}, implementation: titin.sink}}
    conduits: {{lb.flow: post.flow, lb.times: times.in, post.report: report.in}}
programs:
  lb: {{executable: {folder}/lb, execution_model: openmpi, env: {env}}}
  post: {{executable: {folder}/post, execution_model: openmpi, env: {env}}}
settings: {settings}
resources: {{octree.lb: {{mpi_processes: {half}}}, octree.post: {{mpi_processes: {half}}}}}
"""


def main(quick: bool) -> list[Record]:
    """Times both ways in turn, on more and more ranks."""
    found = []
    for ranks in RANKS[:2] if quick else RANKS:
        figures = sweep(1 if quick else 5, {"titin": titin(ranks), ONE_JOB: by_hand(ranks)})
        if len({state for contender in figures.values() for state in contender.pop("found")}) > 1:
            raise SystemExit(f"on {ranks} ranks, runs of the octree do not come to the same results")
        for question in (START, WHOLE):
            pairs = list(zip(figures["titin"][question], figures[ONE_JOB][question]))
            found.append(compare(question, case(ranks), pairs, rival=ONE_JOB, unit="s"))
    return found


def case(ranks: int) -> str:
    """The name of a case in the records."""
    return f"{ranks} ranks"


def words(settings: dict[str, Any]) -> list[str]:
    """Settings as the program by hand takes them."""
    points = "/".join(",".join(map(str, point)) for point in settings["probes"])
    return [f"{name}={value}" for name, value in (settings | {"probes": points}).items()]


@functools.cache
def build() -> Path:
    """Builds all programs anew: titin may have changed since the last build. Returns their folder."""
    native.packages()
    run(["make", "-s", "-B", f"TITIN={native.TITIN}", "MPI=openmpi", "both", "by-hand"], FOLDER)
    return FOLDER / "build" / "openmpi"


def model(folder: Path, ranks: int) -> str:
    """The two jobs, with half of the ranks each."""
    env = "{OMPI_MCA_mpi_yield_when_idle: '1'}" if native.crowded(ranks) else "{}"
    return MODEL.format(folder=folder, env=env, settings=json.dumps(SETTINGS | {"coupling": "pushed"}), half=ranks // 2)


def titin(ranks: int) -> Callable[[], dict[Any, Any]]:
    """Runs of the two jobs."""
    text = model(build(), ranks)

    def once() -> dict[Any, Any]:
        with scratch() as name:
            folder = Path(name)
            begin = time.time()
            native.titin_run(text, folder)
            end = time.time()
            times, report = (
                json.loads((folder / "run" / "instances" / sink / "workdir" / "in.jsonl").read_text())["data"]
                for sink in ("times", "report")
            )
        return figures(begin, end, times | {"fingerprint": report["fingerprint"]})

    return once


def by_hand(ranks: int) -> Callable[[], dict[Any, Any]]:
    """Runs of one MPI job with both programs."""
    command = [*native.open_mpi(ranks), build() / "by_hand", ranks // 2, *words(SETTINGS)]

    def once() -> dict[Any, Any]:
        with scratch() as name:
            begin = time.time()
            said = run(command, Path(name))
            return figures(begin, time.time(), json.loads(said))

    return once


def figures(begin: float, end: float, told: dict[str, Any]) -> dict[Any, Any]:
    """Seconds until the first step and of the whole run, and what was found."""
    return {START: told["begin"] - begin, WHOLE: end - begin, "found": (told["state"], told["fingerprint"])}
