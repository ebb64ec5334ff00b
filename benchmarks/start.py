"""The time of a small run from start to end, beside bare processes and MUSCLE3."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

from benchmarks import python_pair
from benchmarks.harness import Record, alternate, compare, pair, rival_python, run, scratch
from benchmarks.native import TITIN, build

MESSAGES = 1000


def native(program: Path) -> float:
    """Seconds of a whole ``titin run``."""
    with scratch() as name:
        folder = Path(name)
        (folder / "pair.ymmsl").write_text(pair(program, ["macro", MESSAGES // 2], ["micro"]))
        begin = time.perf_counter()
        run([TITIN, "run", "pair.ymmsl", "--run-dir", folder / "run"], folder)
        return time.perf_counter() - begin


def bare() -> float:
    """Seconds for two processes that do nothing."""
    begin = time.perf_counter()
    for process in [subprocess.Popen(["/bin/true"]) for _ in range(2)]:
        process.wait()
    return time.perf_counter() - begin


def muscle3() -> float:
    """Seconds of a whole MUSCLE3 run of two Python programs."""
    model = python_pair.model("muscle3", rival_python(), 1, 0, Path("times"))
    with scratch() as name:
        begin = time.perf_counter()
        python_pair.muscle3_run(model, Path(name))
        return time.perf_counter() - begin


def main(quick: bool) -> list[Record]:
    """Compares a run with two bare processes, and with MUSCLE3."""
    program = build("pair")
    question = f"A run of two native programs with {MESSAGES} empty messages, start to end"
    rounds = 3 if quick else 15
    spawned = alternate(rounds, lambda: native(program), bare)
    coupled = alternate(rounds, lambda: native(program), muscle3)
    return [
        compare(question, "against two bare processes", spawned, rival="spawn of /bin/true", unit="s", limit=0.05),
        compare(question, "against a coupler", coupled, rival="MUSCLE3 0.11, Python", unit="s"),
    ]
