#!/usr/bin/env python3
"""Compare runs with the same equation stepped in one program, and with its exact solution; draw the last one.

python plot.py RUN_DIR... -o heat.svg
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

# The settings and resources of model.ymmsl.
NY, NX, D, K, DT, T_MAX, EVERY = 60, 90, 1.0, 0.005, 0.2, 100.0, 50
PLATE_RANKS, AIR_RANKS = 3, 2
ROW = NY // 4  # of the thermometer
STEPS = round(T_MAX / DT)
TOLERANCE = 1e-10  # degrees


def start():
    u = np.zeros((NY, NX))
    u[NY // 6 : NY // 2, NX // 5 : NX // 2] = 100.0
    return u


def direct():
    """The state before each step, with spreading and losses in one loop."""
    u, states = np.pad(start(), 1), []
    for _ in range(STEPS):
        inside = u[1:-1, 1:-1]
        states.append(inside.copy())
        around = (u[:-2, 1:-1] + u[2:, 1:-1]) + (u[1:-1, :-2] + u[1:-1, 2:])
        inside += DT * (D * (around - 4.0 * inside) - K * inside)
    return np.array(states)


def exact(step):
    """The state as a sum of sines; each step reduces a sine by its own factor."""
    (sy, by), (sx, bx) = (sines(n) for n in (NY, NX))
    left = 1.0 - DT * (D * (by[:, None] + bx) + K)
    return sy @ (left**step * (sy @ start() @ sx)) @ sx * 4.0 / ((NY + 1) * (NX + 1))


def sines(n):
    """The sines that fit between two cold ends, and their rates of decay."""
    waves = np.pi * np.arange(1, n + 1) / (n + 1)
    return np.sin(np.outer(waves, np.arange(1, n + 1))), 4.0 * np.sin(waves / 2.0) ** 2


def coupled(run):
    """The output of the camera and the thermometer."""
    work = Path(run) / "instances"
    return np.load(work / "camera/workdir/pictures.npy"), np.load(work / "thermometer/workdir/history.npy")


def draw(pictures, history, out):
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, (plate, row) = plt.subplots(1, 2, figsize=(8.2, 3.1), layout="constrained", width_ratios=(1.25, 1))
    plate.contourf(pictures[2], levels=np.arange(0, 101, 10), cmap="magma")
    for cut in range(1, PLATE_RANKS):
        plate.axhline(NY * cut / PLATE_RANKS - 0.5, color="white", linewidth=0.8)
    for cut in range(1, AIR_RANKS):
        plate.axvline(NX * cut / AIR_RANKS - 0.5, color="white", linewidth=0.8, linestyle=":")
    plate.axhline(ROW, color="#7fd1ff", linewidth=0.8)
    plate.set(xlabel="cm", ylabel="cm", aspect="equal")
    plate.set_title(
        f"Rows of the plate's ranks, columns of the air's (after {2 * EVERY * DT:.0f} s)", loc="left", fontsize=9
    )
    for step in (0, 50, 150, 450):
        middle = exact(step)[ROW]
        row.plot(middle, color="#1f5f8b", linewidth=3, alpha=0.4, label="exact" if step == 0 else None)
        row.plot(history[step], color="#d1495b", linewidth=1.2, label="coupled" if step == 0 else None)
        row.annotate(f"{step * DT:.0f} s", (31, middle.max() + 2), color="0.5", ha="center")
    row.set(xlabel="cm", ylabel="degrees", xlim=(0, NX - 1), ylim=(0, 110))
    row.set_title("The row of the thermometer", loc="left", fontsize=9)
    row.legend(frameon=False)
    figure.savefig(out, metadata={"Date": None})
    print(f"picture: {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR")
    parser.add_argument("-o", "--out", default="heat.svg")
    args = parser.parse_args()

    states = direct()
    error = max(np.abs(states[step] - exact(step)).max() for step in range(0, STEPS, EVERY))
    print(f"one program: within {error:.1e} degrees of the exact solution (allowed: {TOLERANCE})")
    good = error <= TOLERANCE
    for run in args.runs:
        pictures, history = coupled(run)
        off = max(np.abs(pictures - states[::EVERY]).max(), np.abs(history - states[:, ROW]).max())
        good &= off == 0.0
        print(f"{run}: {'the same to the bit' if off == 0.0 else f'DIFFERENT, by up to {off:.3g} degrees'}")
    draw(pictures, history, args.out)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
