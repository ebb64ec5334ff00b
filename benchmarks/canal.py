"""The cost of computing a canal as two coupled sections: section 4.1 of the MUSCLE 2 paper, with miniapps/canal."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import native
from benchmarks.harness import RESULTS, ROOT, Figures, Record, compare, progress, run, scratch
from benchmarks.sites import Relays

QUESTION = "A step of a lattice Boltzmann canal, in two coupled sections and in one piece"
MINIAPP = ROOT / "miniapps" / "canal"

#: Points per metre. The sizes of the paper begin with 0.5.
SMALL, ALL = [0.25, 0.5], [0.25, 0.5, 0.75, 1.0]

#: The number of timed steps, as in the paper, and of the steps before them that are not timed.
STEPS, WARMUP = 100, 5

WHOLE = "one program, Open MPI"
WAYS = {"fields": "fields", "gathered": "gathered at rank 0"}
OUTSIDE = "outside of collide"
PARTS = ["collide", "halo", "gather", "exchange", "update"]

#: A coupled step may take TARGET times as long as a step of the whole canal at 0.5 points per metre. At any size, a
#: coupled step may take LIMIT µs more.
TARGET, LIMIT = 1.01, 100.0

#: The whole canal may differ by SAME between begin and end of a round. At most SPARE rounds are repeated.
SAME, SPARE = 0.05, 3


def main(quick: bool) -> list[Record]:
    """Measures the smaller sizes, in many rounds."""
    return measure(SMALL[:1] if quick else SMALL, 1 if quick else 7)


def sizes(quick: bool) -> list[Record]:
    """Measures all sizes, three times each as in the paper."""
    found = measure(ALL, 1 if quick else 3)
    if not quick:
        with scratch() as name:
            results = Path(name) / "records.json"
            results.write_text(json.dumps({"records": [asdict(record) for record in found]}))
            run([sys.executable, MINIAPP / "plot.py", "--times", results, "-o", RESULTS / "canal_sizes.svg"], MINIAPP)
    return found


def measure(resolutions: Sequence[float], rounds: int) -> list[Record]:
    """Measures the whole canal and the coupled sections, by fields and gathered, in every round."""
    found = []
    for resolution in resolutions:
        figures = steady(rounds, {way: canal(resolution, way) for way in (WHOLE, *WAYS)})
        states = {state for contender in figures.values() for state in contender.pop("state")}
        if len(states) > 1:
            raise SystemExit(f"at {resolution} points per metre, runs of the canal do not end in the same state")
        for way, name in WAYS.items():
            for part in figures[way]:
                pairs = list(zip(figures[way][part], figures[WHOLE][part]))
                case = f"{resolution} points per metre, {name}, {part}"
                # Rows without a target are for the picture; with a size, the table leaves them out.
                size = None if part in ("step", OUTSIDE) else crossing(resolution)
                target = TARGET if (resolution, way, part) == (0.5, "fields", "step") else None
                found.append(compare(QUESTION, case, pairs, rival=WHOLE, unit="µs", size=size, target=target))
        pairs = list(zip(figures["fields"][OUTSIDE], figures[WHOLE][OUTSIDE]))
        more = [(ours - theirs, theirs) for ours, theirs in pairs]
        case = f"{resolution} points per metre, fields, {OUTSIDE}, more than the whole"
        found.append(compare(QUESTION, case, more, rival=WHOLE, unit="µs", limit=LIMIT))
    return found


def steady(rounds: int, contenders: Mapping[str, Callable[[], dict[str, Any]]]) -> Figures:
    """Times the whole canal, then the coupled sections, then the whole canal again; the mean of the two times of the
    whole counts.

    The machine may change its speed within a round. So a round whose two times of the whole canal differ too much is
    repeated.
    """
    names, spare = list(contenders), SPARE
    figures: Figures = {}
    for number in range(rounds):
        while True:
            progress(f"round {number + 1}/{rounds}, {spare} spare")
            before = contenders[WHOLE]()
            found = {name: contenders[name]() for name in (names[1:] if number % 2 else names[:0:-1])}
            after = contenders[WHOLE]()
            if spare == 0 or abs(before["step"] / after["step"] - 1) < SAME:
                break
            spare -= 1
        if before["state"] != after["state"]:
            raise SystemExit("two runs of the whole canal do not end in the same state")
        found[WHOLE] = {case: (before[case] + after[case]) / 2 for case in before} | {"state": before["state"]}
        for name in names:
            for case, figure in found[name].items():
                figures.setdefault(name, {}).setdefault(case, []).append(figure)
    progress("")
    return figures


@functools.cache
def program() -> Path:
    """The canal, built for Open MPI."""
    native.packages()
    subprocess.run(["make", "-s", "-C", MINIAPP, "MPI=openmpi", f"TITIN={native.TITIN}"], check=True)
    return MINIAPP / "build" / "openmpi" / "canal"


def canal(
    resolution: float, way: str, *, overlap: bool = True, running: Relays | None = None
) -> Callable[[], dict[str, Any]]:
    """A run on this host, or with the sections at two sites. Gives µs of a step and of its parts, on average, and the
    last state.

    The time outside of `collide` is what a step costs the last rank at an exchange, which waits for no other rank: the
    median over the steps of the least time that any rank spent outside of `collide`.
    """
    text = model(program(), resolution, way, overlap=overlap)
    if running:
        text += f"titin:\n{running.places(['left', 'left_report', 'right_report'], ['right'])}"

    def once() -> dict[str, Any]:
        with scratch() as name:
            folder = Path(name)
            (running.titin_run if running else native.titin_run)(text, folder)
            files = sorted(folder.glob("run/instances/*_report/workdir/report.jsonl"))
            reports = [json.loads(file.read_text())["data"] for file in files]
        outside = zip(*(report["outside"]["values"] for report in reports))
        found = {
            "step": 1e6 * max(statistics.mean(report["steps"]["values"]) for report in reports),
            OUTSIDE: 1e6 * statistics.median(map(min, outside)),
        }
        found |= {part: 1e6 * statistics.mean(report[part] for report in reports) for part in PARTS}
        return found | {"state": sum(int(report["fingerprint"], 16) for report in reports) % 2**64}

    return once


def points(resolution: float) -> tuple[int, int, int]:
    """Points along, across and upwards: 13,000 m by 40 m by 10 m, both ends counted."""
    along, across, upwards = (int(metres * resolution + 0.5) + 1 for metres in (13_000, 40, 10))
    return along, across, upwards


def crossing(resolution: float) -> int:
    """Bytes that cross the seam one way in a step."""
    _, across, upwards = points(resolution)
    return 5 * 8 * across * upwards


def model(executable: Path, resolution: float, way: str, *, overlap: bool = True) -> str:
    """The whole canal on two ranks, or two sections on one rank each; every rank has a core of its own. With `overlap`
    a section computes first what crosses the seam."""
    cores = [str(core) for core in sorted(os.sched_getaffinity(0)) * 2][:2]
    sections = {"whole": cores} if way == WHOLE else {"left": cores[:1], "right": cores[1:]}
    settings: dict[str, Any] = {"length": 13_000.0, "width": 40.0, "depth": 10.0, "resolution": resolution}
    settings |= {"lid_x": 0.05, "lid_y": 0.01, "reynolds": 4.0, "steps": STEPS + WARMUP, "warmup": WARMUP}
    settings |= {"x0": 0.0, "x1": 1.0, "across": 1, "exchange": "fields" if way == WHOLE else way, "overlap": overlap}
    ports = {"whole": "", "left": "o_i: to_right, s: from_right, ", "right": "o_i: to_left, s: from_left, "}
    conduits = [f"{name}.report: {name}_report.report" for name in sections]
    if way != WHOLE:
        settings |= {"left.x1": 0.5, "right.x0": 0.5}
        conduits += ["left.to_right: right.from_left", "right.to_left: left.from_right"]
    lines = ["ymmsl_version: v0.2", "description: For timing.", "models:", "  sections:", "    components:"]
    for name in sections:
        section = f"description: a section, ports: {{{ports[name]}o_f: report}}, implementation: pinned_{name}"
        lines += [f"      {name}: {{{section}}}"]
        lines += [
            f"      {name}_report: {{description: its times, ports: {{f_init: report}}, implementation: titin.sink}}"
        ]
    lines += [f"    conduits: {{{', '.join(conduits)}}}"]
    lines += ["programs:"]
    for name, own in sections.items():
        words = json.dumps(["-c", f"shift $$OMPI_COMM_WORLD_RANK; exec taskset -c $$1 {executable}", "sh", *own])
        lines += [f"  pinned_{name}: {{executable: sh, args: {words}, execution_model: openmpi}}"]
    lines += [f"settings: {json.dumps(settings)}"]
    lines += ["resources:", *(f"  sections.{name}: {{mpi_processes: {len(own)}}}" for name, own in sections.items())]
    return "\n".join(lines) + "\n"
