#!/usr/bin/env python3
"""Compare runs of the N-body code with one another, to the bit; draw the density, and where the time of a step goes.

python plot.py OUT.npy... [--steps STEPS.csv] -o nbody.svg

Or make a film's pictures, from the snapshots of a run with --frames:

python plot.py --film frames -o pictures
"""

import argparse
import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

PIXELS = 256
#: Of the density in units of its mean, which is drawn on a scale of logarithms.
LEAST, MOST = 0.3, 30.0
TIMES = {  # after Okabe and Ito (2008)
    "seconds": ("step", "#000000", "-"),
    "tree": ("near forces", "#0072b2", "--"),
    "mesh": ("far forces", "#009e73", "--"),
    "communication": ("between the parts", "#d55e00", "-"),
    "waiting": ("of that, waiting", "#cc79a7", ":"),
}


def load(file):
    """The particles of a run, (count, 9): positions in boxes, momenta, accelerations."""
    try:
        particles = np.load(file)
    except (OSError, ValueError) as error:
        sys.exit(f"{file}: no particles ({error}); did the run succeed?")
    if particles.ndim != 2 or particles.shape[1] != 9:
        sys.exit(f"{file}: an array of shape {particles.shape}; name a file that nbody --out or --frames has written")
    return particles


def density(positions):
    """The mass along z, (x, y), in units of its mean, smoothed over half the mean distance of the particles."""
    count, _, _ = np.histogram2d(positions[:, 0], positions[:, 1], bins=PIXELS, range=((0, 1), (0, 1)))
    smooth = 0.5 / len(positions) ** (1 / 3)
    k = 2 * np.pi * np.fft.fftfreq(PIXELS, 1 / PIXELS)
    k2 = k[:, None] ** 2 + k[None, : PIXELS // 2 + 1] ** 2
    waves = np.fft.rfft2(count) * np.exp(-k2 * smooth**2 / 2)
    return np.fft.irfft2(waves, s=count.shape) * PIXELS**2 / len(positions)


def draw_density(axes, positions):
    scale = matplotlib.colors.LogNorm(LEAST, MOST)
    field = np.clip(density(positions), LEAST, MOST)
    return axes.imshow(field.T, extent=(0, 1, 0, 1), origin="lower", cmap="magma", norm=scale)


def compare(files):
    """Says which of the runs are equal to the first one; returns whether all are, and the first one."""
    good, first = True, load(files[0])
    print(f"{files[0]}: the reference")
    for file in files[1:]:
        other = load(file)
        same = first.tobytes() == other.tobytes()
        good &= same
        if same:
            print(f"{file}: the same to the bit")
        elif other.shape != first.shape:
            print(f"{file}: DIFFERENT, of {len(other)} particles and not of {len(first)}")
        else:
            apart = other[:, :3] - first[:, :3]
            print(f"{file}: DIFFERENT, by up to {np.abs(apart - np.round(apart)).max():.3g} boxes")
    return good, first


def picture(files, steps, out):
    good, particles = compare(files)
    rows = list(csv.DictReader(Path(steps).read_text().splitlines())) if steps else []
    panels = 2 if rows else 1
    figure, axes = plt.subplots(1, panels, figsize=(5 * panels, 4.2), layout="constrained", squeeze=False)
    field = axes[0, 0]
    drawn = draw_density(field, particles[:, :3])
    figure.colorbar(drawn, ax=field, label="mass along the line of sight, in units of the mean")
    field.set(xlabel="x, boxes", ylabel="y, boxes", title="density")
    if rows:
        for edge in ("begin", "end"):
            field.axvline(float(rows[-1][edge]), color="white", linestyle="--", linewidth=1)
        numbers = [int(row["step"]) for row in rows]
        for name, (label, colour, line) in TIMES.items():
            axes[0, 1].plot(numbers, [float(row[name]) for row in rows], color=colour, linestyle=line, label=label)
        axes[0, 1].set(yscale="log", xlabel="step", ylabel="seconds", title="time of a step at part 0")
        axes[0, 1].legend(frameon=False, fontsize=8)
    figure.savefig(out, metadata={"Date": None})
    plt.close(figure)
    print(f"picture: {out}")
    return good


def film(folder, out):
    files = sorted(Path(folder).glob("*.npy"))
    if not files:
        sys.exit(f"{folder}: no snapshots; run nbody with --frames N --frames-folder {folder}")
    Path(out).mkdir(parents=True, exist_ok=True)
    for number, file in enumerate(files, 1):
        figure = plt.figure(figsize=(5, 5), dpi=120)
        axes = figure.add_axes((0, 0, 1, 1))
        draw_density(axes, load(file)[:, :3])
        axes.axis("off")
        figure.savefig(Path(out) / f"{number:05}.png")
        plt.close(figure)
    print(f"{len(files)} pictures: {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="OUT.npy", help="particles; the first file is drawn")
    parser.add_argument("--steps", metavar="FILE", help="draw the times of these steps, too")
    parser.add_argument("--film", metavar="FOLDER", help="draw these snapshots instead, a picture each")
    parser.add_argument("-o", "--out", help="nbody.svg, or the folder `pictures` of a film")
    args = parser.parse_args()
    if bool(args.runs) == bool(args.film):
        parser.error("name files with particles, or a folder of snapshots with --film")
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    if args.film:
        film(args.film, args.out or "pictures")
        return 0
    return 0 if picture(args.runs, args.steps, args.out or "nbody.svg") else 1


if __name__ == "__main__":
    sys.exit(main())
