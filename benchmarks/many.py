"""Many instances and conduits: the experiment of the MUSCLE 2 paper (section 3.1), and separate Python programs.

Each of n instances has a conduit to each of the m/n instances behind it, sends an empty message by each, receives one
by each, and exits. Timed is `titin run` from its start to its end, without what `titin check` takes for the same
description. Time and memory are fitted as a + b n + c m. Memory is that of all processes together, when it is largest.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np

from benchmarks import native
from benchmarks.harness import PROGRAMS, Record, compare, progress, run, scratch

QUESTION = "n instances and m conduits, an empty message by each, from start to end"
MEMORY = "Memory of n instances and m conduits"
PYTHON = "Separate Python programs in a ring"

#: The paper's figures: on an iMac of 2011, Java.
MUSCLE2 = "MUSCLE 2 (paper)"
WHOLE, A, B, C, NATIVE = 7.1, 680.0, 2.0, 0.085, 12.0
MEGABYTES, PORT_KILOBYTES, TEN_CONDUITS = 400.0, 1100.0, 200.0

LIBRARY = "{host: all, library: %s, step: cell}"
COROUTINE = "{host: all, function: 'cell:cell'}"


def model(n: int, m: int, program: str, *, medium: str = "") -> str:
    """The description of n instances and m conduits; ``program`` is what stands for the program in it."""
    ports: list[tuple[list[str], list[str]]] = [([], []) for _ in range(n)]
    conduits = []
    for number in range(m):
        sender, turn = number % n, number // n
        # Never back to the sender: such a conduit has no medium but inproc.
        receiver = (sender + 1 + turn % max(n - 1, 1)) % n
        ports[sender][0].append(f"o{turn}")
        ports[receiver][1].append(f"i{turn}")
        conduits.append(f"      c{sender}.o{turn}: c{receiver}.i{turn}")
    text = ["ymmsl_version: v0.2", "models:", "  many:", "    components:"]
    for number, (sends, receives) in enumerate(ports):
        text.append(
            f"      c{number}: {{description: one of them, ports: {{o_i: {' '.join(sends) or '[]'}, "
            f"s: {' '.join(receives) or '[]'}}}, implementation: cell}}"
        )
    if conduits:
        text += ["    conduits:", *conduits]
    text += ["programs:", f"  cell: {program}"]
    if medium:
        pins = (f"    c{number % n}.o{number // n}: {medium}" for number in range(m))
        text += ["titin:", "  medium:", *pins]
    return "\n".join(text) + "\n"


def seconds(text: str, folder: Path) -> float:
    """How long a run takes, reading and checking apart."""
    (folder / "model.ymmsl").write_text(text)
    begun = time.perf_counter()
    run([native.TITIN, "check", "model.ymmsl"], folder)
    checked = time.perf_counter()
    run([native.TITIN, "run", "model.ymmsl", "--run-dir", "run"], folder)
    return (time.perf_counter() - checked) - (checked - begun)


def megabytes(text: str, folder: Path) -> float:
    """The memory of all processes of a run when that is largest; what processes share is counted once."""
    (folder / "model.ymmsl").write_text(text)
    command = [native.TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    largest = 0
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            largest = max(largest, sum(map(share, family(process.pid))))
            time.sleep(0.005)
    if process.returncode:
        raise SystemExit(f"the run failed; see {folder}")
    return largest / 1000


def share(pid: int) -> int:
    """A process's share of the memory, in kB."""
    try:
        found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for process in found:
        for file in Path(f"/proc/{process}/task").glob("*/children"):
            try:
                found += map(int, file.read_text().split())
            except OSError:
                continue
    return found


def fit(points: Sequence[tuple[int, int]], values: Sequence[float]) -> tuple[float, float, float]:
    """The a, b and c of a + b n + c m. Every point counts by its own size, or the largest alone would count."""
    matrix = np.array([[1.0, n, m] for n, m in points])
    weights = 1.0 / np.array(values)
    found, *_ = np.linalg.lstsq(matrix * weights[:, None], np.ones(len(values)), rcond=None)
    return float(found[0]), float(found[1]), float(found[2])


def hosted(quick: bool) -> list[Record]:
    """All of them in one process, in C and in Python."""
    grid = [(1, 0), (100, 0), (1000, 0), (100, 5000), (1000, 20000), (1000, 50000)]
    rounds = 2 if quick else 6
    languages = {"C": LIBRARY % native.library("cell"), "Python": COROUTINE}
    records = []
    for language, program in languages.items():
        description = f"{{titin: {program}}}"
        times: dict[tuple[int, int], list[float]] = {}
        spaces: dict[tuple[int, int], list[float]] = {}
        points = [*grid, *([(1000, 100000)] if language == "C" else [])]
        for number in range(rounds):
            for point in points:
                progress(f"{language}, round {number + 1}/{rounds}: {point[0]} instances, {point[1]} conduits")
                text = model(*point, description)
                for found, measure in ((times, seconds), (spaces, megabytes)):
                    if measure is megabytes and number >= max(2, rounds // 3):
                        continue
                    with scratch() as name:
                        place(Path(name))
                        found.setdefault(point, []).append(measure(text, Path(name)))
        progress("")
        goal = language == "C"
        for point in [(1000, 50000), *points[6:]]:
            case = f"{language}: {point[0]} instances, {point[1]} conduits"
            limits = {"limit": 1.0 if goal else None}, {"limit": 150.0 if goal else None}
            if point[1] > 50000:
                limits = ({}, {})
            records.append(against(QUESTION, case, times[point], WHOLE, "s", **limits[0]))
            records.append(against(MEMORY, case, spaces[point], MEGABYTES, "MB", **limits[1]))
        # The paper's are a fixed cost, one for each instance, and one for each conduit.
        fits = [fit(grid, [times[point][i] * 1000 for point in grid]) for i in range(rounds)]
        for index, name, theirs, limit in (
            (0, "a, whatever there is", A, 50.0),
            (1, "b, each instance", B, 0.1),
            (2, "c, each conduit", C, 0.01),
        ):
            samples = [one[index] for one in fits]
            case = f"{language}: {name}"
            records.append(against(QUESTION, case, samples, theirs, "ms", limit=limit if goal else None))
        # Of memory it says how many instances with ten conduits each fit into 4 GB.
        sizes = [fit(grid, [spaces[point][i] * 1000 for point in grid]) for i in range(len(spaces[grid[0]]))]
        each = [b + 10 * c for _, b, c in sizes]
        records.append(against(MEMORY, f"{language}: one instance with ten conduits", each, TEN_CONDUITS, "kB"))
    return records


def place(folder: Path) -> None:
    """Puts the Python function where it is looked for, beside the description."""
    (folder / "cell.py").write_text((PROGRAMS / "cell.py").read_text())


def against(
    question: str, case: str, samples: Sequence[float], theirs: float, unit: str, *, limit: float | None = None
) -> Record:
    """A record beside a figure of the paper, which has no spread that we know."""
    pairs = [(sample, theirs) for sample in samples]
    return compare(question, case, pairs, rival=MUSCLE2, unit=unit, limit=limit)


def alone(quick: bool) -> list[Record]:
    """Processes of their own: what one more costs, and a conduit by tcp."""
    program = native.build("single")
    counts = [2, 20, 50]
    rounds = 2 if quick else 6
    times: dict[int, list[float]] = {}
    for number in range(rounds):
        for count in counts:
            progress(f"processes, round {number + 1}/{rounds}: {count}")
            with scratch() as name:
                times.setdefault(count, []).append(
                    seconds(model(count, count, f"{{executable: {program}}}"), Path(name))
                )
    slopes = [
        float(np.polyfit(counts, [times[count][number] * 1000 for count in counts], 1)[0]) for number in range(rounds)
    ]
    records = [against(QUESTION, "one more native process", slopes, NATIVE, "ms", limit=3.0)]
    sizes: dict[int, list[float]] = {}
    for number in range(rounds):
        for count in (2, 2000):
            progress(f"tcp, round {number + 1}/{rounds}: {count} conduits")
            with scratch() as name:
                folder = Path(name)
                text = model(2, count, f"{{executable: {program}}}", medium="tcp")
                seconds(text, folder)
                files = folder.glob("run/instances/*/stdout.txt")
                sizes.setdefault(count, []).append(sum(float(file.read_text()) for file in files))
    progress("")
    each = [(many - few) / 1998 for many, few in zip(sizes[2000], sizes[2])]
    records.append(against(MEMORY, "one more conduit by tcp, both ends", each, PORT_KILOBYTES, "kB", limit=64.0))
    return records


def separate(quick: bool) -> list[Record]:
    """Python programs that are processes of their own, beside so many that only start."""
    records = []
    for count in (50,) if quick else (50, 200):
        program = json.dumps([str(PROGRAMS / "single.py")])
        text = model(count, count, f"{{executable: {sys.executable}, args: {program}}}")
        pairs, good = [], 0
        # 200 take a quarter of a minute.
        rounds = 2 if quick else 20 if count == 50 else 6
        for number in range(rounds):
            progress(f"Python, round {number + 1}/{rounds}: {count} programs")
            with scratch() as name:
                folder = Path(name)
                (folder / "model.ymmsl").write_text(text)
                command = [native.TITIN, "run", "model.ymmsl", "--run-dir", "run"]
                done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
                good += done.returncode == 0
                bare = started(count) if number % 5 == 0 else pairs[-1][1]
                pairs.append((joined(folder / "run" / "titin_manager.log"), bare))
        progress("")
        print(f"  {count} Python programs: {good} of {rounds} runs ended well")
        if good != rounds:
            raise SystemExit(f"only {good} of {rounds} runs of {count} Python programs ended well")
        case = f"{count} programs, until all run"
        records.append(compare(PYTHON, case, pairs, rival="as many that only start", unit="s"))
    return records


def joined(log: Path) -> float:
    """From the first line of a log to the last instance that joined."""
    times = [line[:23] for line in log.read_text().splitlines() if "  joined: " in line or "  manager  titin " in line]
    stamps = [datetime.fromisoformat(text) for text in times]
    return (max(stamps) - min(stamps)).total_seconds()


def started(count: int) -> float:
    """How long so many Python processes take that do nothing."""
    begun = time.perf_counter()
    processes = [subprocess.Popen([sys.executable, "-c", "pass"]) for _ in range(count)]
    if sum(process.wait() != 0 for process in processes):
        raise SystemExit("Python does not start")
    return time.perf_counter() - begun


PARTS: Sequence[Callable[[bool], list[Record]]] = (hosted, alone, separate)


def main(quick: bool) -> list[Record]:
    """All of it."""
    return [record for part in PARTS for record in part(quick)]


if __name__ == "__main__":
    for record in main(quick="--quick" in sys.argv):
        print(record.case, round(record.titin, 4), record.unit, statistics.fmean(record.spread["titin"]))
