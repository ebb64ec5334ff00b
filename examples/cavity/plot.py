#!/usr/bin/env python3
"""Compare runs of the cavity with one another, to the bit, and with Ghia, Ghia and Shin (1982); draw them.

python plot.py RUN_DIR... -o cavity.svg
"""

import argparse
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).parent
TOLERANCE = 0.0075  # in units of the lid's speed


def blocks(run):
    """The five planes of every block of a run: x, y, u, v, density."""
    files = sorted(Path(run).glob("instances/*/workdir/*.npy"))
    if not files:
        sys.exit(f"{run}: no fields under instances/*/workdir; did the run succeed? Its log says.")
    return [np.load(file) for file in files]


def assemble(parts):
    """The whole cavity from its blocks, each at its own x and y: u, v and density, rows from below."""
    cells = round(np.sqrt(sum(part[0].size for part in parts)))
    whole = np.full((3, cells, cells), np.nan)
    for x, y, *values in parts:
        rows, columns = (y[:, 0] * cells).astype(int), (x[0] * cells).astype(int)
        whole[:, rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = values
    return whole


def centre_lines(whole):
    """Positions with the walls, u along the vertical centre line, v along the horizontal one."""
    u, v, _ = whole
    cells = u.shape[0]
    low, high = (cells - 1) // 2, cells // 2  # the two middle cells, or the middle cell if the number is odd
    place = np.concatenate(([0.0], (np.arange(cells) + 0.5) / cells, [1.0]))
    u_line = np.concatenate(([0.0], (u[:, low] + u[:, high]) / 2, [1.0]))
    v_line = np.concatenate(([0.0], (v[low] + v[high]) / 2, [0.0]))
    return place, u_line, v_line


def reference(name):
    return np.loadtxt(HERE / f"ghia-1982-re100-{name}.csv", delimiter=",", skiprows=2, unpack=True)


def draw(whole, parts, lines, errors, out):
    u, v, _ = whole
    cells = u.shape[0]
    centres = (np.arange(cells) + 0.5) / cells
    place, u_line, v_line = lines
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, (flow, along_y, along_x) = plt.subplots(
        1, 3, figsize=(12.5, 4.2), gridspec_kw={"width_ratios": [1.2, 1, 1]}, layout="constrained"
    )

    speed = flow.imshow(np.hypot(u, v), origin="lower", extent=(0, 1, 0, 1), cmap="viridis", vmin=0, vmax=1)
    flow.streamplot(centres, centres, u, v, color="white", linewidth=0.6, density=1.3, arrowsize=0.6)
    for x, y, *_ in parts:
        half = 0.5 / cells
        box = (x.min() - half, y.min() - half), np.ptp(x) + 2 * half, np.ptp(y) + 2 * half
        flow.add_patch(plt.Rectangle(*box, fill=False, edgecolor="white", linestyle="--", linewidth=1))
    flow.set(xlim=(0, 1), ylim=(0, 1), xlabel="x", ylabel="y")
    flow.set_title(f"speed, {cells} × {cells} cells, {len(parts)} coupled block{'s' * (len(parts) > 1)}")
    figure.colorbar(speed, ax=flow, label="in units of the lid's", shrink=0.85)

    for axes, name, at, line, across in (
        (along_y, "u", "y", u_line, "x = 0.5"),
        (along_x, "v", "x", v_line, "y = 0.5"),
    ):
        where, value = reference(name)
        axes.plot(place, line, color="#1f5f8b", linewidth=1.5, label="coupled run")
        axes.plot(
            where,
            value,
            "o",
            color="#d1495b",
            markersize=5,
            markerfacecolor="none",
            clip_on=False,
            label="Ghia et al. (1982)",
        )
        axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
        axes.set(xlim=(0, 1), xlabel=at, ylabel=name)
        axes.set_title(f"{name} on {across}, within {errors[name]:.3f} of the lid's speed")
    along_y.legend(frameon=False)
    figure.suptitle("Lid-driven cavity, Re = 100, lattice Boltzmann D2Q9")
    figure.savefig(out, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR")
    parser.add_argument("-o", "--out", default="cavity.svg")
    args = parser.parse_args()

    good = True
    first = None
    for run in args.runs:
        parts = blocks(run)
        whole = assemble(parts)
        if first is None:
            first = whole
        same = first.tobytes() == whole.tobytes()
        good &= same
        verdict = "the same to the bit" if same else f"DIFFERENT, by up to {np.abs(whole - first).max():.3g}"
        print(
            f"{len(parts)} block{'s' * (len(parts) > 1)} ({run}): {verdict if whole is not first else 'the reference'}"
        )

    lines = place, u_line, v_line = centre_lines(whole)
    errors = {}
    for name, line in (("u", u_line), ("v", v_line)):
        where, value = reference(name)
        errors[name] = np.abs(np.interp(where, place, line) - value).max()
        good &= errors[name] <= TOLERANCE
        print(f"{name} on the centre line: within {errors[name]:.4f} of Ghia et al. (allowed: {TOLERANCE})")

    draw(whole, parts, lines, errors, args.out)
    print(f"picture: {args.out}")
    print("passed" if good else "FAILED: see above")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
