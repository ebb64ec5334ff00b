#!/usr/bin/env python3
"""Compare the ensemble's mean and spread with those of the exact solution, and draw both.

python plot.py RUN_DIR -o ensemble.svg
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

TOLERANCE = 0.01  # relative to the final population; the growth model's time step limits the accuracy


def exact(hours, k_mean=1.0, k_spread=0.2, u_start=0.01):
    """Mean and spread of the logistic curve over all normally distributed rates, by a much finer quadrature."""
    places, weights = np.polynomial.hermite_e.hermegauss(80)
    weights /= weights.sum()
    rates = k_mean + k_spread * places
    u = 1.0 / (1.0 + (1.0 / u_start - 1.0) * np.exp(-np.outer(hours, rates)))
    mean = u @ weights
    return mean, np.sqrt((u - mean[:, None]) ** 2 @ weights)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("-o", "--out", default="ensemble.svg")
    args = parser.parse_args()

    hours, mean, spread = np.load(Path(args.run) / "instances/result/workdir/statistics.npy").T
    exact_mean, exact_spread = exact(hours)
    errors = np.abs(mean - exact_mean).max(), np.abs(spread - exact_spread).max()
    for name, error in zip(("mean", "spread"), errors):
        print(f"{name}: within {error:.4f} of the exact one (allowed: {TOLERANCE})")

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, axes = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
    fine = np.linspace(0, hours[-1], 200)
    fine_mean, fine_spread = exact(fine)
    axes.fill_between(fine, fine_mean - fine_spread, fine_mean + fine_spread, color="#dce8f0", label="exact, ± spread")
    axes.plot(fine, fine_mean, color="#1f5f8b", linewidth=1.2, label="exact, mean")
    axes.errorbar(hours, mean, spread, fmt="o", color="#d1495b", markersize=3.5, linewidth=1, label="ensemble of ten")
    axes.set(xlabel="hours", ylabel="population", ylim=(0, None), title="Growth at a rate of 1.0 ± 0.2 per hour")
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(args.out, metadata={"Date": None})
    print(f"picture: {args.out}")
    return 0 if max(errors) <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
