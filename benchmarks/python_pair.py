"""What a message costs between two Python programs over TCP, next to MUSCLE3."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.harness import PROGRAMS, Record, alternate, compare, pair, rival_python, run, scratch

#: case, elements of float64, steps per round
CASES = [("0 B", 0, 1000), ("1 KiB", 128, 1000), ("1 MiB", 1 << 17, 50), ("64 MiB", 1 << 23, 4)]


def model(library: str, python: Path, elements: int, steps: int, result: Path) -> str:
    """The pair in Python, with this library; the seconds per message go to ``result``."""
    macro = [PROGRAMS / "macro.py", library, elements, steps, result]
    return pair(python, macro, [PROGRAMS / "micro.py", library])


def once(library: str, elements: int, steps: int) -> float:
    """Runs a pair; microseconds per message, one way."""
    python = Path(sys.executable) if library == "titin" else rival_python()
    with scratch() as name:
        folder = Path(name)
        result = folder / "seconds"
        (folder / "pair.ymmsl").write_text(model(library, python, elements, steps, result))
        tools = python.parent
        if library == "titin":
            command = [tools / "titin", "run", "pair.ymmsl", "--run-dir", folder / "run"]
        else:
            command = [tools / "muscle_manager", "--start-all", "--run-dir", folder / "run", "pair.ymmsl"]
            (folder / "run").mkdir()
        run(command, folder)
        return float(result.read_text()) * 1e6


def main(quick: bool) -> list[Record]:
    """All sizes."""
    records = []
    for case, elements, steps in CASES:
        pairs = alternate(
            3 if quick else 15,
            lambda e=elements, s=steps: once("titin", e, s),  # type: ignore[misc]
            lambda e=elements, s=steps: once("muscle3", e, s),  # type: ignore[misc]
        )
        question = "One message between two Python programs, one way, TCP"
        target = {"0 B": 0.02, "64 MiB": 0.04}.get(case)
        records.append(
            compare(question, case, pairs, rival="MUSCLE3 0.11", unit="µs", size=8 * elements, target=target)
        )
    return records
