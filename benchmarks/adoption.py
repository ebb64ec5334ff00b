"""The cost of a message between two MUSCLE3 programs in Python that run on titin, beside MUSCLE3 and titin's own
interface; and of whole runs of two and of a hundred programs."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from benchmarks import native, python_pair
from benchmarks.harness import (
    KIB,
    MIB,
    Record,
    alternate,
    compare,
    named,
    rival_python,
    run,
    scratch,
    sweep,
)

QUESTION = "One message between two MUSCLE3 programs in Python, one way"
WHOLE = "A run of two MUSCLE3 programs in Python, by muscle_manager, start to end"
MANY = "A run of 100 MUSCLE3 programs in Python, by muscle_manager, start to end"
IMPORT = "Time of the import of libmuscle"
MUSCLE3 = "MUSCLE3 0.11"
TITIN = "titin's own interface"
LARGEST = 64 * MIB

#: The ratios to reach, by rival and size.
TARGETS = {
    (MUSCLE3, 0): 0.08,
    (MUSCLE3, KIB): 0.08,
    (MUSCLE3, MIB): 0.04,
    (MUSCLE3, 64 * MIB): 0.03,
    (TITIN, 0): 1.3,
    (TITIN, KIB): 1.3,
}


def once(share: int) -> native.Times:
    """A run of MUSCLE3's programs on titin, over all sizes; gives microseconds per message, one way."""
    text = python_pair.model("muscle3", Path(sys.executable), share, LARGEST, native.RESULT)
    return native.coupled(text)


def whole(python: Path, pairs: int = 1) -> float:
    """Seconds of a whole run of pairs of programs with the ``muscle_manager`` of an environment."""
    model = python_pair.model("muscle3", python, 1, 0, Path("times"))
    if pairs > 1:
        model = re.sub("^( +)(implementation: .*)$", rf"\1\2\n\1multiplicity: {pairs}", model, flags=re.MULTILINE)
    with scratch() as name:
        folder = Path(name)
        (folder / "run").mkdir()
        (folder / "model.ymmsl").write_text(model)
        command = [python.parent / "muscle_manager", "--start-all", "--run-dir", folder / "run", "model.ymmsl"]
        begin = time.perf_counter()
        run(command, folder)
        return time.perf_counter() - begin


def imported(python: Path) -> float:
    """Seconds of Python with the import and nothing else."""
    begin = time.perf_counter()
    subprocess.run([python, "-c", "import libmuscle"], check=True)
    return time.perf_counter() - begin


def main(quick: bool) -> list[Record]:
    """Runs each library once with all sizes in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    contenders = {
        "titin": once(share),
        MUSCLE3: python_pair.once("muscle3", share),
        TITIN: python_pair.once("titin", share),
    }
    figures = sweep(rounds, contenders)
    found = []
    for size in [0] + [KIB << power for power in range(17)]:
        for rival in (MUSCLE3, TITIN):
            pairs = list(zip(figures["titin"][size], figures[rival][size]))
            target = TARGETS.get((rival, size))
            found.append(compare(QUESTION, named(size), pairs, rival=rival, unit="µs", size=size, target=target))
    ours, theirs = Path(sys.executable), rival_python()
    runs = alternate(rounds, lambda: whole(ours), lambda: whole(theirs))
    # A hundred processes import their libraries at once: a round takes a minute.
    crowds = alternate(max(rounds // 3, 1), lambda: whole(ours, 50), lambda: whole(theirs, 50))
    imports = alternate(rounds, lambda: imported(ours), lambda: imported(theirs))
    return [
        *found,
        compare(WHOLE, "run of 2 programs", runs, rival=MUSCLE3, unit="s", target=0.25),
        compare(MANY, "run of 100 programs", crowds, rival=MUSCLE3, unit="s", target=0.5),
        compare(IMPORT, "import", imports, rival=MUSCLE3, unit="s", target=0.65),
    ]
