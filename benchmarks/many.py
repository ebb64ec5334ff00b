"""Many instances and conduits: the experiment of the MUSCLE 2 paper (section 3.1), and separate Python programs.

Each of n instances has a conduit to each of the m/n instances behind it, sends an empty message by each conduit,
receives a message by each conduit, and exits. The benchmark times `titin run` from start to end, as the paper does. A
second figure leaves out reading and checking the description: the time of `titin check` for the description, less its
time for a nearly empty one. Time and memory are fitted as a + b n + c m. Memory is the largest memory of each process
at any time, added up.
"""

from __future__ import annotations

import contextlib
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import native
from benchmarks.harness import PROGRAMS, Record, compare, progress, run, scratch

QUESTION = "n instances and m conduits, an empty message by each, from start to end"
APART = "The same without reading and checking the description"
MEMORY = "Memory of n instances and m conduits"
PYTHON = "Separate Python programs in a ring"


@dataclass(frozen=True)
class Rival:
    """Known figures of MUSCLE 2: seconds for 1,000 instances and 50,000 conduits, and milliseconds of the fit."""

    name: str
    whole: float
    a: float
    b: float
    c: float
    native: float


#: Section 3.1 and the first column of table 3 of the paper.
PAPER = Rival("MUSCLE 2, the paper's iMac", 7.1, 770, 1.6, 0.11, 24)
#: The same experiment with MUSCLE 2 built from its sources, on a machine like the one in the results, on another day.
ANEW = Rival("MUSCLE 2, measured anew", 7.7, 1200, 2.0, 0.085, 12)

#: The last column of table 3: MiB for an empty run, KiB for an instance, a conduit, a port whose peer is in another
#: process.
NOTHING, INSTANCE, CONDUIT, PORT = 73, 168, 3.4, 1.1 * 1024

LIBRARY = "{host: all, library: %s, step: cell}"
COROUTINE = "{host: all, function: 'cell:cell'}"


def model(n: int, m: int, program: str, *, medium: str = "") -> str:
    """The description of n instances and m conduits. ``program`` is the text of the program in the description."""
    ports: list[tuple[list[str], list[str]]] = [([], []) for _ in range(n)]
    conduits = []
    for number in range(m):
        sender, turn = number % n, number // n
        # No conduit leads back to its sender: such a conduit has no medium but inproc.
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


def seconds(text: str, folder: Path) -> tuple[float, float]:
    """The duration of a run, and the duration without reading and checking."""
    (folder / "model.ymmsl").write_text(text)
    (folder / "one.ymmsl").write_text(model(1, 0, "{executable: nothing}"))

    def timed(*words: str) -> float:
        begin = time.perf_counter()
        run([native.TITIN, *words], folder)
        return time.perf_counter() - begin

    # The start of the command itself is a part of the run, too.
    reading = timed("check", "model.ymmsl") - timed("check", "one.ymmsl")
    whole = timed("run", "model.ymmsl", "--run-dir", "run")
    return whole, whole - reading


def mebibytes(text: str, folder: Path) -> float:
    """The largest memory of each process of a run at any time, added up. The system keeps the largest memory of each
    process."""
    (folder / "model.ymmsl").write_text(text)
    command = [native.TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    most: dict[int, int] = {}
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            for pid in family(process.pid):
                # A process that has ended keeps its last figure.
                most[pid] = peak(pid) or most.get(pid, 0)
            time.sleep(0.005)
    if process.returncode:
        raise SystemExit(f"the run failed; see {folder}")
    return sum(most.values()) / 1024


def peak(pid: int) -> int:
    """The largest memory that a process has had, in KiB; 0 for a process that has ended."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) if found else 0


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    found = [pid]
    for process in found:
        # Processes and threads may end during this look.
        with contextlib.suppress(OSError):
            for file in Path(f"/proc/{process}/task").glob("*/children"):
                found += map(int, file.read_text().split())
    return found


def fit(points: Sequence[tuple[int, int]], values: Sequence[float]) -> tuple[float, float, float]:
    """The a, b and c of a + b n + c m. Each point is weighted by its own size; otherwise the largest point alone would
    count."""
    matrix = np.array([[1.0, n, m] for n, m in points])
    weights = 1.0 / np.array(values)
    found, *_ = np.linalg.lstsq(matrix * weights[:, None], np.ones(len(values)), rcond=None)
    return float(found[0]), float(found[1]), float(found[2])


def hosted(quick: bool) -> list[Record]:
    """Measures all instances in one process, in C and in Python."""
    grid = [(1, 0), (100, 0), (1000, 0), (100, 5000), (1000, 20000), (1000, 50000)]
    rounds = 2 if quick else 6
    languages = {"C": LIBRARY % native.library("cell"), "Python": COROUTINE}
    records = []
    for language, program in languages.items():
        description = f"{{titin: {program}}}"
        wholes: Samples = {}
        aparts: Samples = {}
        spaces: Samples = {}
        points = [*grid, *([(1000, 100000)] if language == "C" else [])]
        for number in range(rounds):
            for point in points:
                progress(f"{language}, round {number + 1}/{rounds}: {point[0]} instances, {point[1]} conduits")
                text = model(*point, description)
                with scratch() as name:
                    place(Path(name))
                    whole, apart = seconds(text, Path(name))
                    wholes.setdefault(point, []).append(whole)
                    aparts.setdefault(point, []).append(apart)
                with scratch() as name:
                    place(Path(name))
                    spaces.setdefault(point, []).append(mebibytes(text, Path(name)))
        progress("")
        goal = language == "C"
        records += sizes(language, QUESTION, "s", wholes, [(PAPER.name, PAPER.whole), (ANEW.name, ANEW.whole)])
        records += fits(grid, language, QUESTION, wholes, [PAPER, ANEW])
        if goal:
            records += sizes(language, APART, "s", aparts, [(PAPER.name, PAPER.whole)], limit=1.0)
            records += fits(grid, language, APART, aparts, [PAPER], limits=(50.0, 0.1, 0.01))
        theirs = NOTHING + (1000 * INSTANCE + 50000 * CONDUIT) / 1024
        records += sizes(language, MEMORY, "MiB", spaces, [(PAPER.name, theirs)], limit=150.0 if goal else None)
        each = [b + 10 * c for _, b, c in fitted(grid, spaces, 1024)]
        ten = [(PAPER.name, INSTANCE + 10 * CONDUIT)]
        records += against(MEMORY, f"{language}: one instance with ten conduits", each, ten, "KiB")
    return records


#: A figure for each round, by the numbers of instances and conduits.
Samples = dict[tuple[int, int], list[float]]


def sizes(
    language: str,
    question: str,
    unit: str,
    samples: Samples,
    rivals: Sequence[tuple[str, float]],
    *,
    limit: float | None = None,
) -> list[Record]:
    """Records of the largest case of the paper, and of twice as many conduits. The paper has no such case, so titin's
    own figure stands beside it."""
    large, larger = (1000, 50000), (1000, 100000)
    case = f"{language}: 1000 instances, %d conduits"
    records = against(question, case % large[1], samples[large], rivals, unit, limit=limit)
    if larger in samples:
        pairs = list(zip(samples[larger], samples[large]))
        records.append(compare(question, case % larger[1], pairs, rival="titin, 50000 conduits", unit=unit))
    return records


def fits(
    grid: Sequence[tuple[int, int]],
    language: str,
    question: str,
    samples: Samples,
    rivals: Sequence[Rival],
    *,
    limits: Sequence[float | None] = (None, None, None),
) -> list[Record]:
    """Records of the fit: a fixed cost, a cost for each instance, and a cost for each conduit."""
    found = fitted(grid, samples, 1000)
    records = []
    for index, (name, limit) in enumerate(zip(("a, whatever there is", "b, each instance", "c, each conduit"), limits)):
        theirs = [(rival.name, (rival.a, rival.b, rival.c)[index]) for rival in rivals]
        case = f"{language}: {name}"
        records += against(question, case, [one[index] for one in found], theirs, "ms", limit=limit)
    return records


def fitted(grid: Sequence[tuple[int, int]], samples: Samples, scale: float) -> list[tuple[float, float, float]]:
    """The fit of each round, with the figures multiplied by ``scale``."""
    return [fit(grid, [samples[point][i] * scale for point in grid]) for i in range(len(samples[grid[0]]))]


def place(folder: Path) -> None:
    """Puts the Python function beside the description, where the run looks for it."""
    (folder / "cell.py").write_text((PROGRAMS / "cell.py").read_text())


def against(
    question: str,
    case: str,
    samples: Sequence[float],
    rivals: Sequence[tuple[str, float]],
    unit: str,
    *,
    limit: float | None = None,
) -> list[Record]:
    """Records beside figures known from elsewhere, without a spread. The first record has the limit."""
    limits = [limit] + [None] * len(rivals)
    return [
        compare(question, case, [(sample, theirs) for sample in samples], rival=name, unit=unit, limit=limit)
        for (name, theirs), limit in zip(rivals, limits)
    ]


def alone(quick: bool) -> list[Record]:
    """Measures processes of their own: the cost of one more process, and of one more conduit by tcp."""
    program = native.build("single")
    counts = [2, 20, 50]
    rounds = 2 if quick else 6
    times: dict[int, list[float]] = {}
    for number in range(rounds):
        for count in counts:
            progress(f"processes, round {number + 1}/{rounds}: {count}")
            with scratch() as name:
                whole, _ = seconds(model(count, count, f"{{executable: {program}}}"), Path(name))
                times.setdefault(count, []).append(whole)
    slopes = [
        float(np.polyfit(counts, [times[count][number] * 1000 for count in counts], 1)[0]) for number in range(rounds)
    ]
    rivals = [(rival.name, rival.native) for rival in (PAPER, ANEW)]
    records = against(QUESTION, "one more native process", slopes, rivals, "ms", limit=3.0)
    spaces: dict[int, list[float]] = {}
    for number in range(rounds):
        for count in (2, 2000):
            progress(f"tcp, round {number + 1}/{rounds}: {count} conduits")
            with scratch() as name:
                folder = Path(name)
                text = model(2, count, f"{{executable: {program}}}", medium="tcp")
                seconds(text, folder)
                files = folder.glob("run/instances/*/stdout.txt")
                spaces.setdefault(count, []).append(sum(float(file.read_text()) for file in files))
    progress("")
    each = [(many - few) / 1998 for many, few in zip(spaces[2000], spaces[2])]
    # Each end is a port.
    rivals = [(PAPER.name, 2 * PORT)]
    return records + against(MEMORY, "one more conduit by tcp, both ends", each, rivals, "KiB", limit=64.0)


def separate(quick: bool) -> list[Record]:
    """Measures Python programs in processes of their own, beside as many Python programs that only start."""
    records = []
    for count in (50,) if quick else (50, 200):
        program = json.dumps([str(PROGRAMS / "single.py")])
        text = model(count, count, f"{{executable: {sys.executable}, args: {program}}}")
        pairs, good = [], 0
        # A round of 200 programs takes a quarter of a minute.
        rounds = 2 if quick else 20 if count == 50 else 6
        for number in range(rounds):
            progress(f"Python, round {number + 1}/{rounds}: {count} programs")
            with scratch() as name:
                folder = Path(name)
                (folder / "model.ymmsl").write_text(text)
                # The two sides take turns at going first.
                bare = [started(count)] if number % 2 else []
                command = [native.TITIN, "run", "model.ymmsl", "--run-dir", "run"]
                begun = time.time()
                done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
                good += done.returncode == 0
                files = folder.glob("run/instances/*/stdout.txt")
                moments = [float(file.read_text()) for file in files] if done.returncode == 0 else [begun]
                bare = bare or [started(count)]
                pairs.append((max(moments) - begun, bare[0]))
        progress("")
        print(f"  {count} Python programs: {good} of {rounds} runs ended well")
        if good != rounds:
            raise SystemExit(f"only {good} of {rounds} runs of {count} Python programs ended well")
        case = f"{count} programs, until all run"
        records.append(compare(PYTHON, case, pairs, rival="as many that only start", unit="s"))
    return records


def started(count: int) -> float:
    """The time until ``count`` Python programs run that only print the time."""
    program = "import time; print(time.time())"
    begun = time.time()
    processes = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(count)]
    moments = [float(process.communicate()[0]) for process in processes]
    return max(moments) - begun


PARTS: Sequence[Callable[[bool], list[Record]]] = (hosted, alone, separate)


def main(quick: bool) -> list[Record]:
    """Measures all parts."""
    return [record for part in PARTS for record in part(quick)]


if __name__ == "__main__":
    for record in main(quick="--quick" in sys.argv):
        print(record.case, round(record.titin, 4), record.unit, statistics.fmean(record.spread["titin"]))
