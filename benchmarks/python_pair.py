"""What a message costs between two Python programs, next to MUSCLE3."""

from __future__ import annotations

import sys
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
RIVAL = "MUSCLE3 0.11"


def model(library: str, python: Path, share: int, largest: int, result: str | Path) -> str:
    """The pair in Python, by this library, or "titin-loan"; the times go to ``result``."""
    macro = [PROGRAMS / "macro.py", library, share, largest, result]
    return pair(python, macro, [PROGRAMS / "micro.py", library])


def once(library: str, share: int) -> native.Times:
    """A sweep over all sizes; microseconds per message, one way."""
    if library == "muscle3":
        python = rival_python()
        return native.timed(lambda at: muscle3_run(model(library, python, share, LARGEST, at / "times"), at))
    return native.coupled(model(library, Path(sys.executable), share, LARGEST, native.RESULT))


def muscle3_run(text: str, folder: Path) -> None:
    """Runs a model with MUSCLE3's manager."""
    (folder / "run").mkdir()
    (folder / "model.ymmsl").write_text(text)
    run([rival_python().parent / "muscle_manager", "--start-all", "--run-dir", folder / "run", "model.ymmsl"], folder)


def main(quick: bool) -> list[Record]:
    """All sizes, a run of each in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    contenders = {"titin": once("titin", share), "loan": once("titin-loan", share), RIVAL: once("muscle3", share)}
    figures = sweep(rounds, contenders)
    found = []
    for way, prefix, targets in [("titin", "", {0: 0.02, 16 * MIB: 0.04}), ("loan", "loan, ", {16 * MIB: 0.04})]:
        for size in [0] + [KIB << power for power in range(17)]:
            pairs = list(zip(figures[way][size], figures[RIVAL][size]))
            case, target = prefix + named(size), targets.get(size)
            found.append(compare(QUESTION, case, pairs, rival=RIVAL, unit="µs", size=size, target=target))
    if not quick:
        sent = [record for record in found if not record.case.startswith("loan")]
        lent = [record for record in found if record.case.startswith("loan")]
        lines = {
            "titin, Python": [(record.size_bytes or 0, record.titin) for record in sent],
            "titin, Python, loan": [(record.size_bytes or 0, record.titin) for record in lent],
            "MUSCLE3 0.11, Python": [(record.size_bytes or 0, record.rival) for record in sent],
        }
        curves(RESULTS / "python_pair.svg", QUESTION, lines)
    return found
