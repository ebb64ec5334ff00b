#!/usr/bin/env python3
"""Compare the ring with the exact solution of its equations, and draw both.

python plot.py RUN_DIR -o ring.svg
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from ring import CELLS, STEPS, WAVES, A, start

TOLERANCE = 1e-12


def final(run):
    """The numbers that each cell printed at its end."""
    outputs = [Path(run) / "instances" / f"cell_{i}" / "stdout.txt" for i in range(CELLS)]
    return np.array([float(output.read_text()) for output in outputs])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("-o", "--out", default="ring.svg")
    args = parser.parse_args()

    # A wave around the ring keeps its shape; each step reduces its height by the same factor.
    begin = np.array([start(i) for i in range(CELLS)])
    exact = begin * (1.0 - 2.0 * A * (1.0 - np.cos(2.0 * np.pi * WAVES / CELLS))) ** STEPS
    u = final(args.run)
    error = np.abs(u - exact).max()
    print(f"{CELLS} cells after {STEPS} steps: within {error:.1e} of the exact solution (allowed: {TOLERANCE})")

    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "titin"})
    figure, axes = plt.subplots(figsize=(4.6, 4.4), subplot_kw={"projection": "polar"}, layout="constrained")
    angle = 2.0 * np.pi * np.arange(CELLS + 1) / CELLS
    for values, style in ((begin, {"color": "0.7", "label": "at the start"}), (exact, {"color": "#1f5f8b"})):
        axes.plot(angle, 3.0 + np.append(values, values[0]), linewidth=1.2, **({"label": "exact"} | style))
    axes.plot(angle[:-1], 3.0 + u, "o", color="#d1495b", markersize=3, label=f"{CELLS} instances")
    axes.set(yticks=[], xticks=[], ylim=(0, 4.2), title=f"Heat in a ring after {STEPS} steps")
    axes.legend(loc="center", frameon=False)
    figure.savefig(args.out, metadata={"Date": None})
    print(f"picture: {args.out}")
    return 0 if error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
