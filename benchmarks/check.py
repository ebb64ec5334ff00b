"""The time to read and check a large description, beside the ymmsl package."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from benchmarks.harness import Record, alternate, compare, rival_python, run, scratch

COMPONENTS = 1000
DEGREE = 50

RIVAL = """
import sys, time
from pathlib import Path
import ymmsl
from ymmsl.v0_2 import Configuration, resolve
begin = time.perf_counter()
configuration = ymmsl.load_as(Configuration, Path(sys.argv[1]))
configuration.check_consistent()
print(time.perf_counter() - begin)
"""


def write(path: Path, components: int, degree: int) -> None:
    """Writes a model in which every component sends to the next ``degree`` components."""
    lines = [
        "ymmsl_version: v0.2",
        "description: Large, for timing.",
        "models:",
        "  large:",
        "    components:",
    ]
    outs = " ".join(f"o{k}" for k in range(degree))
    ins = " ".join(f"s{k}" for k in range(degree))
    for number in range(components):
        lines += [
            f"      c{number}:",
            "        description: one of many",
            f"        ports: {{o_i: {outs}, s: {ins}}}",
            "        implementation: cell",
        ]
    lines.append("    conduits:")
    for number in range(components):
        for k in range(degree):
            lines.append(f"      c{number}.o{k}: c{(number + k + 1) % components}.s{k}")
    lines += ["programs:", "  cell:", "    executable: cell", "resources:"]
    lines += [f"  large.c{number}: {{threads: 1}}" for number in range(components)]
    path.write_text("\n".join(lines) + "\n")


def main(quick: bool) -> list[Record]:
    """Compares the whole command with loading and checking inside Python (without Python's start-up)."""
    rival = rival_python()
    with scratch() as name:
        folder = Path(name)
        (folder / "rival.py").write_text(RIVAL)
        records = []
        for components, degree, limit in [(100, 50, None), (COMPONENTS, DEGREE, 0.5)]:
            model = folder / f"{components}.ymmsl"
            write(model, components, degree)

            def titin(model: Path = model) -> float:
                begin = time.perf_counter()
                run([Path(sys.executable).parent / "titin", "check", model], folder)
                return time.perf_counter() - begin

            def other(model: Path = model) -> float:
                return float(run([rival, "rival.py", model], folder))

            # The rival takes half a minute for the large model.
            rounds, beside = (3, 1 if components > 100 else 3) if quick else (15, 15 if components <= 100 else 3)
            pairs = alternate(beside, titin, other)
            alone = [titin() for _ in range(rounds - beside)]
            case = f"{components} components, {components * degree} conduits"
            question = "Reading and checking a description"
            records.append(compare(question, case, pairs, alone=alone, rival="ymmsl 0.18", unit="s", limit=limit))
        return records
