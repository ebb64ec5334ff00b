#!/usr/bin/env python3
"""Compare the statistics of runs with one another, to the bit, and steady flows with that of Hagen and Poiseuille; draw
the flow.

python plot.py RUN_DIR... --steady COARSE_RUN FINE_RUN -o octree.svg
"""

import argparse
import json
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

#: The order of convergence that two meshes have to show, and the largest errors on the finer one.
ORDER, TOLERANCE, SHEAR_TOLERANCE = 1.7, 0.01, 0.05
MEAN, FLUCTUATION, SHEAR, INDEX = 1, 5, 8, 9  # results: of the velocity along the tube, and at the wall


class Results:
    """What LB or POST_DATA has found."""

    def __init__(self, folder):
        self.report = json.loads((folder / "report.json").read_text())
        with np.load(folder / "statistics.npz") as kept:
            self.cells, self.statistics, self.probes = kept["cells"], kept["statistics"], kept["probes"]
        edge = self.report["edge"]
        self.x, self.y, self.z = self.cells % edge, self.cells // edge % edge, self.cells // edge**2

    def same(self, other):
        """Whether every bit is the same, in whichever order the cells are."""
        ours, theirs = np.argsort(self.cells), np.argsort(other.cells)
        return (
            self.cells[ours].tobytes() == other.cells[theirs].tobytes()
            and self.statistics[:, ours].tobytes() == other.statistics[:, theirs].tobytes()
            and self.probes.tobytes() == other.probes.tobytes()
            and self.report["fingerprint"] == other.report["fingerprint"]
        )

    def plane(self, values):
        """Numbers of the cells in the plane through the middle, in rows upwards, with gaps where the tube is not."""
        edge = self.report["edge"]
        plane = np.full((edge, edge), np.nan)
        here = self.z == edge // 2
        plane[self.y[here], self.x[here]] = values[here]
        return plane

    def along(self, result):
        """The mean of a result at the wall, by the place along the tube."""
        at_wall = self.statistics[SHEAR] > 0
        count = np.bincount(self.x[at_wall], minlength=self.report["edge"])
        return np.bincount(self.x[at_wall], self.statistics[result][at_wall], self.report["edge"]) / count


def results(run):
    """What LB and POST_DATA have found in a run, by name."""
    found = {
        name: Results(folder)
        for name in ("lb", "post")
        if (folder := Path(run) / "instances" / f"{name}_kept" / "workdir").joinpath("report.json").exists()
    }
    if not found:
        sys.exit(f"{run}: no results under instances/*_kept/workdir; did the run succeed? Its log says.")
    return found


def compare(runs):
    """Whether all programs of all runs have found the same."""
    good, first = True, None
    for run in runs:
        for name, found in results(run).items():
            ranks = found.report["ranks"]
            line = f"{run}, {'LB itself' if name == 'lb' else 'POST_DATA'} on {ranks} rank{'s' * (ranks > 1)}"
            if first is None:
                first = found
                print(f"{line}: the reference")
                continue
            same = found.same(first)
            good &= same
            print(f"{line}: {'the same to the bit' if same else 'DIFFERENT'}")
    return good


def poiseuille(found):
    """The largest errors of a steady flow where the tube is straight, at its ends: of the velocity along it, as a part
    of the largest, and of the mean shear at the wall.

    The exact flow is that of the force less the pressure's slope, which is measured: u = g (R² - r²) / 4ν.
    """
    report, density, u = found.report, found.statistics[0], found.statistics[MEAN]
    edge, reach = report["edge"], report["edge"] // 32
    pressure = [density[found.x == place].mean() / 3 for place in (reach, edge - 1 - reach)]
    slope = (pressure[0] - pressure[1]) / (2 * reach + 1)
    push, radius = report["force"] - slope, report["radius"] * edge
    here = found.x == 0
    square = (found.y[here] + 0.5 - edge / 2) ** 2 + (found.z[here] + 0.5 - edge / 2) ** 2
    exact = push / (4 * report["viscosity"]) * (radius**2 - square)
    largest = push / (4 * report["viscosity"]) * radius**2
    shear = found.along(SHEAR)[0] / (push * radius / 2) - 1
    return np.abs(u[here] - exact).max() / largest, abs(shear)


def steady(coarse, fine):
    """Whether the error falls as it should."""
    (coarse_flow, coarse_shear), (flow, shear) = (poiseuille(results(run)["post"]) for run in (coarse, fine))
    order = math.log2(coarse_flow / flow)
    print(f"Hagen-Poiseuille, velocity: within {coarse_flow:.2g}, on the finer mesh {flow:.2g}: order {order:.2f}")
    print(f"Hagen-Poiseuille, wall shear: within {coarse_shear:.2g}, on the finer mesh {shear:.2g}")
    good = order >= ORDER and flow <= TOLERANCE and shear <= SHEAR_TOLERANCE
    if not good:
        print(f"allowed: {TOLERANCE} on the finer mesh, order {ORDER}; for the shear {SHEAR_TOLERANCE}")
    return good


def draw(found, out):
    report, unit = found.report, 1000.0  # velocities in thousandths of a cell per step
    edge = report["edge"]
    figure, panels = plt.subplots(2, 2, figsize=(12.5, 6.2), layout="constrained")
    (mean, spread), (shear, series) = panels
    place = (np.arange(edge) + 0.5) / edge

    velocity = [unit * found.plane(found.statistics[MEAN + k]) for k in range(2)]
    picture = mean.imshow(velocity[0], extent=(0, 1, 0, 1), origin="lower", cmap="viridis")
    mean.streamplot(place, place, *velocity, color="white", linewidth=0.5, density=(1.4, 0.9), arrowsize=0.6)
    figure.colorbar(picture, ax=mean, label="10⁻³ cells per step")
    mean.set_title("mean velocity along the tube")

    part = np.repeat(np.arange(len(report["sizes"])), report["sizes"])
    parts = found.plane(part.astype(float))
    picture = spread.imshow(
        unit * found.plane(found.statistics[FLUCTUATION]), extent=(0, 1, 0, 1), origin="lower", cmap="magma"
    )
    for number in range(len(report["sizes"]) - 1):
        inside = np.where(np.isnan(parts), -1.0, parts <= number)
        spread.contour(place, place, np.ma.masked_less(inside, 0), [0.5], colors="white", linewidths=0.8)
    figure.colorbar(picture, ax=spread, label="10⁻³ cells per step")
    spread.set_title(f"its fluctuation (rms), and the parts of {len(report['sizes'])} ranks")
    for axes in (mean, spread):
        axes.set(ylim=(0.2, 0.8), xlabel="along the tube")

    shear.plot(place, 1e6 * found.along(SHEAR), color="#0072b2", label="mean size of the wall shear")
    shear.set(xlabel="along the tube", ylabel="10⁻⁶ density · cells² per step²", xlim=(0, 1), title="at the wall")
    shear.set_ylim(bottom=0)
    other = shear.twinx()
    other.plot(place, found.along(INDEX), color="#d55e00", label="oscillatory shear index")
    other.set(ylim=(0, 0.5))
    other.spines.right.set_visible(True)
    lines = shear.get_lines() + other.get_lines()
    shear.legend(lines, [line.get_label() for line in lines], frameon=False, loc="lower left")

    steps = report["first"] + report["every"] * np.arange(report["samples"])
    for number, probe in enumerate(found.probes):
        series.plot(steps, unit * probe[:, 1], label=f"probe {number}", linewidth=1.2)
    series.set(xlabel="step", ylabel="10⁻³ cells per step", title="velocity along the tube at the probes")
    series.legend(frameon=False)
    figure.suptitle("A swinging flow in a tube with a bulge: LB, and POST_DATA on the fly")
    figure.savefig(out, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="*", metavar="RUN_DIR")
    parser.add_argument("--steady", nargs=2, metavar="RUN_DIR", help="steady flows on a mesh and on a finer one")
    parser.add_argument("-o", "--out", help="draw the flow of the first run")
    args = parser.parse_args()
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    good = compare(args.runs)
    if args.steady:
        good &= steady(*args.steady)
    if args.out:
        draw(results(args.runs[0])["post"], args.out)
        print(f"picture: {args.out}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
