#!/usr/bin/env python3
"""Compare runs of the canal with one another, to the bit, and with the exact steady flow; draw the flow.

python plot.py RUN_DIR... -o canal.svg

Or draw where the time of a step goes, like figures 7 and 8 of the MUSCLE 2 paper, from the results of the benchmark:

python plot.py --times ../../benchmarks/results/canal_sizes.json -o times.svg
"""

import argparse
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

TOLERANCE = 0.02  # in units of the lid's speed
PARTS = {  # after Okabe and Ito (2008)
    "collide": "#bbbbbb",
    "halo": "#e69f00",
    "gather": "#009e73",
    "exchange": "#0072b2",
    "update": "#cc79a7",
}


def sections(run):
    """The sections of a run, from left to right: the report and the flow of each."""
    found = []
    for file in Path(run).glob("instances/*/workdir/flow.npy"):
        found.append((json.loads(file.with_name("report.json").read_text()), np.load(file)))
    if not found:
        sys.exit(f"{run}: no flow under instances/*/workdir; did the run succeed? Its log says.")
    return sorted(found, key=lambda section: section[0]["begin"])


def steady(ny, nz):
    """The steady flow along a long canal, (ny, nz), in units of the lid's speed, far from its ends.

    The fluid that the lid drags along comes back below: u = lid - G slope. `lid` is the flow under a lid without a
    pressure gradient, and `slope` the flow of a unit gradient under a lid at rest, both as Fourier series across the
    canal. G is such that no water is gained: the populations that cross a plane cancel. The sum of the velocities of
    the points is then not zero but a sixth of the lid's speed for each point of the width, since populations that
    bounce off the lid have not crossed.
    """
    y, z = (np.arange(ny) + 0.5)[:, None], (np.arange(nz) + 0.5)[None, :]
    lid, slope = np.zeros((ny, nz)), np.zeros((ny, nz))
    for n in range(1, 400, 2):
        k = n * np.pi / ny
        # sinh(kz) / sinh(k nz), and 1 - cosh(k (z - nz/2)) / cosh(k nz/2), without overflow.
        rise = np.exp(k * (z - nz)) * np.expm1(-2 * k * z) / np.expm1(-2 * k * nz)
        bulge = 1 - (np.exp(-k * z) + np.exp(-k * (nz - z))) / (1 + np.exp(-k * nz))
        lid += 4 / (n * np.pi) * np.sin(k * y) * rise
        slope += 4 * ny**2 / (n * np.pi) ** 3 * np.sin(k * y) * bulge
    return lid - slope * (lid.sum() - ny / 6) / slope.sum()


def draw(flow, seams, exact, error, out):
    _, u, _, w = flow
    ny, nz, nx = u.shape
    x, z = np.arange(nx) + 0.5, np.arange(nz) + 0.5
    figure, (along, across, profile) = plt.subplots(
        1, 3, figsize=(12.5, 3.6), gridspec_kw={"width_ratios": [2.4, 1, 1]}, layout="constrained"
    )
    colours = {"cmap": "RdBu_r", "vmin": -1, "vmax": 1, "origin": "lower"}
    middle = along.imshow(u[ny // 2], extent=(0, nx, 0, nz), aspect="auto", **colours)
    along.streamplot(x, z, u[ny // 2], w[ny // 2], color="0.3", linewidth=0.5, density=(1.6, 0.8), arrowsize=0.6)
    for seam in seams:
        along.axvline(seam, color="black", linestyle="--", linewidth=1)
    along.set(xlim=(0, nx), ylim=(0, nz), xlabel="along the canal, points", ylabel="height, points")
    along.set_title(f"velocity along the canal, {len(seams) + 1} coupled section{'s' * bool(seams)}")
    across.imshow(u[:, :, nx // 2].T, extent=(0, ny, 0, nz), aspect="auto", **colours)
    across.set(xlabel="across, points", title="half-way along")
    figure.colorbar(middle, ax=across, label="in units of the lid's")

    profile.plot(u[ny // 2, :, nx // 2], z, color="#1f5f8b", linewidth=1.5, label="coupled run")
    profile.plot(exact[ny // 2], z, "o", color="#d1495b", markersize=5, markerfacecolor="none", label="exact")
    profile.axvline(0, color="0.8", linewidth=0.8, zorder=0)
    profile.set(ylim=(0, nz), xlabel="u", ylabel="height, points")
    profile.set_title(f"in the middle, within {error:.3f}")
    profile.legend(frameon=False)
    figure.suptitle("Canal under a moving lid, Re = 4, lattice Boltzmann D3Q19")
    figure.savefig(out, metadata={"Date": None})


def compare(runs, out):
    good, first = True, None
    for run in runs:
        parts = sections(run)
        flow = np.concatenate([flow for _, flow in parts], axis=3)
        state = sum(int(report["fingerprint"], 16) for report, _ in parts) % 2**64
        seams = [report["begin"] for report, _ in parts[1:]]
        if first is None:
            first = flow, state
        same = (first[0].tobytes(), first[1]) == (flow.tobytes(), state)
        good &= same
        verdict = "the same to the bit" if same else f"DIFFERENT, by up to {np.abs(flow - first[0]).max():.3g}"
        ranks = " and ".join(str(report["ranks"]) for report, _ in parts)
        print(f"{run}, on {ranks} ranks: {verdict if first[0] is not flow else 'the reference'}")

    density, u = flow[:2]
    gained = abs(density.mean() - 1)
    good &= gained < 1e-12
    print(f"mass: as at the beginning within {gained:.1g}")
    exact = steady(*u.shape[:2])
    error = np.abs(u[:, :, u.shape[2] // 2] - exact).max()
    good &= error <= TOLERANCE
    print(f"flow half-way along: within {error:.4f} of the exact one (allowed: {TOLERANCE})")
    draw(flow, seams, exact, error, out)
    return good


def times(results, out):
    """Bars for the parts of a step, by size and kind of exchange, in units of a step of the whole canal.

    Each ratio is taken within a round, so that changes of the machine's speed from round to round do not matter.
    """
    records = json.loads(Path(results).read_text())["records"]
    whole, ways, ratios = records[0]["rival_name"], {}, {}
    for record in records:
        size, _, rest = record["case"].partition(", ")
        way, _, part = rest.partition(", ")
        ways.setdefault(size, {}).setdefault(way, {})[part] = record["titin"]
        ways[size].setdefault(whole, {})[part] = record["rival"]
        if part == "step":
            ratios[size, way] = record["ratio"]
    figure, panels = plt.subplots(1, len(ways), figsize=(3.2 * len(ways), 3.6), sharey=True, layout="constrained")
    for axes, (size, found) in zip(np.atleast_1d(panels), ways.items(), strict=True):
        names = sorted(found, key=lambda name: name != whole)
        labels = [name.partition(",")[0].partition(" at")[0] for name in names]
        step = found[whole]["step"]
        bottom = np.zeros(len(names))
        for part, colour in PARTS.items():
            shares = [found[name][part] / found[name]["step"] for name in names]
            heights = np.array([ratios.get((size, name), 1.0) for name in names]) * shares
            axes.bar(labels, heights, bottom=bottom, color=colour, label=part, width=0.6)
            bottom += heights
        axes.set_title(f"{size}\n{step / 1000:.3g} ms a step", fontsize=9)
        axes.axhline(1, color="0.5", linewidth=0.8, linestyle=":")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    np.atleast_1d(panels)[0].set_ylabel("time of a step, by what the whole takes")
    figure.savefig(out, metadata={"Date": None})
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN_DIR")
    parser.add_argument("--times", metavar="FILE", help="draw these figures of the benchmark instead")
    parser.add_argument("-o", "--out", default="canal.svg")
    args = parser.parse_args()
    if bool(args.runs) == bool(args.times):
        parser.error("name run directories to compare, or a file with --times")
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    good = times(args.times, args.out) if args.times else compare(args.runs, args.out)
    print(f"picture: {args.out}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
