#!/usr/bin/env python3
"""Compare the split network with the whole one, and draw both.

python plot.py RUN_DIR_WHOLE RUN_DIR_SPLIT -o drainage.svg
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

PEAK, VOLUME = 0.0015, 0.0005  # allowed differences, relative to the whole run's peak and volume


def hydrograph(run, name):
    """Hours and cubic metres a second."""
    seconds, flow = np.load(Path(run) / "instances" / name / "workdir" / f"{name}.npy").T
    return seconds / 3600.0, flow


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("whole")
    parser.add_argument("split")
    parser.add_argument("-o", "--out", default="drainage.svg")
    args = parser.parse_args()

    hours, whole = hydrograph(args.whole, "outflow")
    _, split = hydrograph(args.split, "outflow")
    _, cut_flow = hydrograph(args.split, "cut_flow")

    peak = np.abs(split - whole).max() / whole.max()
    volume = split.sum() / whole.sum() - 1.0
    seconds = (hours[1] - hours[0]) * 3600.0
    print(f"peak outflow: whole {whole.max():.3f} m3/s, split {split.max():.3f} m3/s")
    print(f"largest difference at any time: {peak:.2%} of the peak (allowed: {PEAK:.2%})")
    print(f"volume: {whole.sum() * seconds:.0f} m3, {volume:+.2%} when split (allowed: {VOLUME:.2%})")

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, (flows, difference) = plt.subplots(
        2, 1, figsize=(7.5, 5), sharex=True, gridspec_kw={"height_ratios": [3, 1]}, layout="constrained"
    )
    hours, whole, split, cut_flow = (row[::6] for row in (hours, whole, split, cut_flow))  # a point a minute
    flows.fill_between(hours, cut_flow, color="#dce8f0", label="across the cut, split")
    flows.plot(hours, whole, color="0.25", linewidth=3, alpha=0.35, label="to the river, whole")
    flows.plot(hours, split, color="#d1495b", linewidth=1.2, label="to the river, split")
    flows.set(ylabel="flow (m³/s)", title="A town's canals after a storm, in one SWMM run and in two coupled ones")
    flows.legend(frameon=False)
    difference.plot(hours, 100 * (split - whole) / whole.max(), color="#d1495b", linewidth=1)
    difference.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    difference.set(xlabel="hours since midnight", ylabel="difference\n(% of peak)", xlim=(0, hours[-1]))
    figure.savefig(args.out, metadata={"Date": None})
    print(f"picture: {args.out}")
    return 0 if peak <= PEAK and abs(volume) <= VOLUME else 1


if __name__ == "__main__":
    sys.exit(main())
