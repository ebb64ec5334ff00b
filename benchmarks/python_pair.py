"""The cost of a message between two Python programs, beside MUSCLE3 and mpi4py."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import native
from benchmarks.harness import (
    KIB,
    MIB,
    PROGRAMS,
    RESULTS,
    Record,
    compare,
    named,
    pair,
    rival_python,
    run,
    sweep,
)
from benchmarks.picture import curves

LARGEST = 64 * MIB
QUESTION = "One message between two Python programs, one way"
MUSCLE3 = "MUSCLE3 0.11"
MPI4PY = "mpi4py, Open MPI"


#: The ratios to reach, by titin's way, rival and size.
TARGETS = {
    ("titin", MUSCLE3, 0): 0.02,
    ("titin", MUSCLE3, 16 * MIB): 0.04,
    ("loan", MUSCLE3, 16 * MIB): 0.04,
    ("titin", MPI4PY, 0): 2.0,
    ("titin", MPI4PY, 64 * MIB): 0.7,
}


def model(library: str, python: Path, share: int, largest: int, result: str | Path) -> str:
    """The model of the pair in Python with this library, or "titin-loan"; the times go to ``result``."""
    macro = [PROGRAMS / "macro.py", library, share, largest, result]
    return pair(python, macro, [PROGRAMS / "micro.py", library])


def once(library: str, share: int) -> native.Times:
    """A run over all sizes; gives microseconds per message, one way."""
    if library == "muscle3":
        python = rival_python()
        return native.timed(lambda at: muscle3_run(model(library, python, share, LARGEST, at / "times"), at))
    if library == "mpi4py":
        python, sweep_of = Path(sys.executable), [share, LARGEST]
        native.packages()
        macro = [*native.open_mpi(1), python, PROGRAMS / "macro.py", library, *sweep_of, native.RESULT]
        return native.alone(*macro, ":", "-np", 1, python, PROGRAMS / "micro.py", library, *sweep_of)
    return native.coupled(model(library, Path(sys.executable), share, LARGEST, native.RESULT))


def muscle3_run(text: str, folder: Path) -> None:
    """Runs a model with MUSCLE3's manager."""
    (folder / "run").mkdir()
    (folder / "model.ymmsl").write_text(text)
    run([rival_python().parent / "muscle_manager", "--start-all", "--run-dir", folder / "run", "model.ymmsl"], folder)


def main(quick: bool) -> list[Record]:
    """Runs each library once with all sizes in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    libraries = {"titin": "titin", "loan": "titin-loan", MUSCLE3: "muscle3", MPI4PY: "mpi4py"}
    figures = sweep(rounds, {name: once(library, share) for name, library in libraries.items()})
    found = []
    for way, prefix in [("titin", ""), ("loan", "loan, ")]:
        for size in [0] + [KIB << power for power in range(17)]:
            for rival in (MUSCLE3, MPI4PY):
                pairs = list(zip(figures[way][size], figures[rival][size]))
                target = TARGETS.get((way, rival, size))
                found.append(
                    compare(QUESTION, prefix + named(size), pairs, rival=rival, unit="µs", size=size, target=target)
                )
    if not quick:
        draw(found)
    return found


def draw(found: Sequence[Record]) -> None:
    """Draws the curves of all four ways."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for record in found:
        lent = record.case.startswith("loan")
        size = record.size_bytes or 0
        if record.rival_name == MPI4PY:
            lines.setdefault("titin, Python, loan" if lent else "titin, Python", []).append((size, record.titin))
        if not lent:
            lines.setdefault(record.rival_name, []).append((size, record.rival))
    curves(RESULTS / "python_pair.svg", QUESTION, lines)
