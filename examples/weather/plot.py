#!/usr/bin/env python3
"""Check the output of river and radar in each run, and draw the versions of each program over time in the last run.

python plot.py RUN_DIR... -o weather.svg
"""

import argparse
import sqlite3
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np

# The settings of model.ymmsl.
NY, NX, STEPS, DT = 60, 90, 50, 1.0
RIVER_STEPS, RIVER_DT, K = 20, 2.5, 0.125
COLUMNS = slice(NX // 3, 2 * NX // 3)  # of the river's catchment


def rain(t):
    """The version of a simulated time."""
    step = round(t / DT)
    i, j = np.arange(NY)[:, None], np.arange(NX)
    return np.maximum(0.0, 20.0 - abs(i - 15 - step // 2) - abs(j - 2 * step))


def river():
    """The expected output of the river: time asked for, time of the version, and level."""
    said, level = [], 0.0
    for step in range(RIVER_STEPS):
        asked = step * RIVER_DT
        t = asked // DT * DT
        level += RIVER_DT * (rain(t)[:, COLUMNS].mean() - K * level)
        said.append((asked, t, level))
    return said


def shown(t):
    """The expected output of the radar for a version, if all its parts are of that version."""
    u = rain(t)
    return t, u.sum(), (u @ np.arange(NX)).sum() / u.sum()


def said(run, name):
    lines = (Path(run) / "instances" / name / "stdout.txt").read_text().splitlines()
    return [tuple(map(float, line.split())) for line in lines]


def wrong(run):
    """The mistake of a run, or None; and the versions that the radar has shown."""
    seen = [line[0] for line in said(run, "radar")]
    if said(run, "river") != river():
        return "the river is WRONG", seen
    if said(run, "radar") != [shown(t) for t in seen]:
        return "the radar has shown rain that there NEVER was", seen
    if seen != sorted(seen) or seen[-1] != (STEPS - 1) * DT:
        return "the radar has not got the last version LAST", seen
    return None, seen


def trace(run):
    """The times at which each program had each version, in seconds from the first, of a run with --trace.

    The weather works once it has sent a version.
    """
    rows = sqlite3.connect(Path(run) / "performance.sqlite").execute(
        "SELECT instance, start_time / 1e9, message_timestamp FROM all_events"
        " WHERE type IN ('RECEIVE', 'region work') ORDER BY start_time"
    )
    had = {"weather": [], "river": [], "radar": []}
    for name, time, t in rows:
        had[name].append((time, len(had[name]) * DT if t is None else t))
    if not all(had.values()):
        sys.exit(f"{run} has no trace to draw: run it by `titin run --trace`")
    start = min(points[0][0] for points in had.values())
    return {name: [(time - start, t) for time, t in points] for name, points in had.items()}


def draw(had, out):
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, axes = plt.subplots(figsize=(8.2, 3.4), layout="constrained")
    end = max(points[-1][0] for points in had.values())
    looks = {
        "weather": {"color": "0.6", "linewidth": 1, "label": "weather: its newest version"},
        "river": {
            "color": "#1f5f8b",
            "marker": "o",
            "markersize": 3,
            "linewidth": 1,
            "label": "river: the one at its own time",
        },
        "radar": {
            "color": "#d1495b",
            "marker": "s",
            "markersize": 3,
            "linewidth": 1,
            "label": "radar: the latest, when it is ready",
        },
    }
    for name, points in had.items():
        times, versions = zip(*points, (end, points[-1][1]), strict=True)
        axes.step(times, versions, where="post", markevery=range(len(points)), **looks[name])
    axes.set(xlabel="seconds of the run", ylabel="simulated minutes", xlim=(0, None), ylim=(0, None))
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(out, metadata={"Date": None})
    print(f"picture: {out}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", metavar="RUN_DIR")
    parser.add_argument("-o", "--out", default="weather.svg")
    args = parser.parse_args()

    failed = 0
    for run in args.runs:
        why, seen = wrong(run)
        failed += why is not None
        fine = f"the river as in every run; the radar has seen {len(set(seen))} of {STEPS} versions, whole"
        print(f"{run}: {why or fine}")
    draw(trace(args.runs[-1]), args.out)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
