"""A step of a model with the Basic Model Interface, beside the same loop written by hand in one process."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import native
from benchmarks.harness import PROGRAMS, Record, compare, run, stepping, sweep

SIDE = 1000
STEPS = 64
PROGRAM = PROGRAMS / "bmi_plate.py"
QUESTION = f"A step of a BMI model with {SIDE * SIDE:,} cells out and in"
BY_HAND = "by hand, one process"
#: The second model: one that only holds what it is given, or one that computes as much as the first.
CASES = {"Mirror": "a model and one that computes nothing", "Plate": "two models that compute alike"}


def coupled(other: str, steps: int) -> native.Times:
    """A run of two models, which exchange all their cells in each step."""

    def start(folder: Path) -> None:
        words = []
        for name, result in (("Plate", folder / "times"), (other, "-")):
            config = folder / f"{len(words)}.txt"
            config.write_text(f"{SIDE} {steps} {result}")
            words.append(
                ["-m", "titin.bmi", "run", f"{PROGRAM}:{name}", config, "--variable=out=u", "--variable=in=source"]
            )
        native.titin_run(stepping([(sys.executable, arguments) for arguments in words]), folder)

    return native.timed(start)


def by_hand(other: str, steps: int) -> native.Times:
    """The same two models in a loop."""
    return native.timed(lambda folder: run([sys.executable, PROGRAM, other, SIDE, steps, folder / "times"], folder))


def main(quick: bool) -> list[Record]:
    """Runs both in every round."""
    rounds, steps = (3, 24) if quick else (15, STEPS)
    found = []
    for other, case in CASES.items():
        figures = sweep(rounds, {"titin": coupled(other, steps), BY_HAND: by_hand(other, steps)})
        size = SIDE * SIDE
        pairs = [(a / 1000, b / 1000) for a, b in zip(figures["titin"][size], figures[BY_HAND][size])]
        found.append(compare(QUESTION, case, pairs, rival=BY_HAND, unit="ms", target=1.1))
    return found
