#!/usr/bin/env python3
"""Print and draw the climate of runs of the Lorenz system, after the time at which the fine scale may be replaced.

python plot.py RUN_DIR... -o emulator.svg
"""

import argparse
import re
import sys
from pathlib import Path

import numpy as np

SETTLED = 5.0  # time that does not count, after the fine scale was replaced
LAGS = (0.1, 0.2, 0.3, 0.4, 0.5)
NAMES = {"computed": "fine scale computed", "learned": "fine scale learned", "nothing": "no fine scale"}
COLOURS = {"computed": "#444444", "learned": "#1f5f8b", "nothing": "#d1495b"}


class Run:
    """The settings of a run, and X of its columns in each step."""

    def __init__(self, folder):
        said = (Path(folder) / "configuration.ymmsl").read_text()
        self.then = re.search(r"\bthen: (\w+)", said)[1]
        self.dt, self.learn = (float(re.search(rf"\b{name}: ([\d.e-]+)", said)[1]) for name in ("dt", "learn"))
        columns = int(re.search(r"\bcolumns: (\d+)", said)[1])
        path = Path(folder) / "instances" / "lorenz" / "workdir" / "series.bin"
        if not path.exists():
            sys.exit(f"{path} is not there; did the run succeed? Its log says.")
        self.x, self.u = np.fromfile(path, "<f8").reshape(-1, 2, columns).transpose(1, 0, 2)
        self.replaced = round(self.learn / self.dt)
        self.settled = self.x[self.replaced + round(SETTLED / self.dt) :]
        if len(self.settled) < 10 * max(LAGS) / self.dt:
            sys.exit(f"{folder} is too short for a climate: give it a longer time `use`")

    def autocorrelation(self, lag):
        """Of X with itself after this time."""
        steps = round(lag / self.dt)
        away = self.settled - self.settled.mean()
        return np.mean(away[: len(away) - steps] * away[steps:]) / np.mean(away**2)


def tell(runs):
    """A line for each run: mean and variance of X, and its autocorrelation at some lags."""
    print(f"{'':22}{'mean':>8}{'variance':>10}   autocorrelation after " + "".join(f"{lag:>8}" for lag in LAGS))
    for run in runs:
        correlations = "".join(f"{run.autocorrelation(lag):8.3f}" for lag in LAGS)
        print(f"{NAMES[run.then]:22}{run.settled.mean():8.3f}{run.settled.var():10.2f}{'':25}{correlations}")


def draw(runs, out):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, axes = plt.subplot_mosaic(
        [["x", "x", "x"], ["u", "density", "correlation"]], figsize=(10.5, 5.6), layout="constrained"
    )
    for run in runs:
        if run.then != "learned":
            continue
        some = slice(max(run.replaced - round(8 / run.dt), 0), run.replaced + round(8 / run.dt))
        times = run.dt * np.arange(len(run.x))[some]
        axes["x"].plot(times, run.x[some, 0], color=COLOURS["learned"], lw=1)
        axes["x"].axvspan(times[0], run.learn, color="#eeeeee", lw=0)
        axes["x"].set(xlim=(times[0], times[-1]), xlabel="time", ylabel="X of a column")
        axes["x"].set_title("The fine scale is computed and learned (grey), then replaced by the network", loc="left")
        before, after = slice(0, run.replaced, 7), slice(run.replaced, None, 23)
        axes["u"].plot(run.x[before].ravel(), run.u[before].ravel(), ",", color=COLOURS["computed"])
        axes["u"].plot(run.x[after].ravel(), run.u[after].ravel(), ",", color=COLOURS["learned"])
        axes["u"].set(xlabel="X", ylabel="U")
        axes["u"].set_title("What the fine scale does", loc="left")
    lags = np.arange(0, 2.001, 0.05)
    for run in sorted(runs, key=lambda run: list(NAMES).index(run.then)):
        style = {"color": COLOURS[run.then], "label": NAMES[run.then], "ls": "--" if run.then == "learned" else "-"}
        density, edges = np.histogram(run.settled, bins=60, density=True)
        axes["density"].plot((edges[1:] + edges[:-1]) / 2, density, **style)
        axes["correlation"].plot(lags, [run.autocorrelation(lag) for lag in lags], **style)
    axes["density"].set(xlabel="X", ylim=(0, None))
    axes["density"].set_title("How often X has a value", loc="left")
    axes["correlation"].set(xlabel="lag")
    axes["correlation"].set_title("Autocorrelation of X", loc="left")
    axes["correlation"].legend(frameon=False)
    # Thousands of dots as paths would be a large file.
    for line in axes["u"].lines:
        line.set_rasterized(True)
    figure.savefig(out, metadata={"Date": None}, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR")
    parser.add_argument("-o", "--out")
    args = parser.parse_args()
    runs = [Run(folder) for folder in args.runs]
    tell(runs)
    if args.out:
        draw(runs, args.out)
        print(f"picture: {args.out}")


if __name__ == "__main__":
    main()
