#!/usr/bin/env python3
"""Print and draw the times of the steps of ToySMP runs.

python plot.py RUN_DIR... -o toysmp.svg
"""

import argparse
import csv
import re
import statistics
import sys
from pathlib import Path

WARM = 2  # the first steps, whose memory is fresh
PARTS = ("there", "compB", "back", "compA, compC")
COLOURS = ("#1f5f8b", "#bbbbbb", "#6aa7cf", "#dddddd")


class Run:
    """The settings of a run, and the times of its steps."""

    def __init__(self, folder):
        said = (Path(folder) / "configuration.ymmsl").read_text()
        self.aggregated = "aggregated: true" in said
        self.ranks = [int(count) for count in re.findall(r"mpi_processes: (\d+)", said)]
        nx, ny = (int(re.search(rf"\b{name}: (\d+)", said)[1]) for name in ("nx", "ny"))
        self.megabytes = 4 * 10 * 8 * nx * ny / 1e6
        self.steps = steps(*(Path(folder) / "instances" / name / "workdir" / "times.csv" for name in "abc"))

    def name(self):
        count = str(self.ranks[0]) if len(set(self.ranks)) == 1 else "+".join(map(str, self.ranks))
        return f"{count}, {'aggregated' if self.aggregated else 'separate'}"

    def of(self, part):
        """The time of this part in each step, in milliseconds."""
        return [1000 * step[part] for step in self.steps]


def steps(*paths):
    """The times of the parts of each step but the first, in seconds, from the files of compA, compB and compC."""
    found = []
    for a, b, c in zip(*map(marks, paths), strict=True):
        # Times are by the clock of the host. The time before both components have begun to send does not count.
        there = b["received"] - max(a["begin"], c["begin"])
        back = max(a["received"], c["received"]) - b["computed"]
        found.append(
            {
                "there": there,
                "compB": b["computed"] - b["received"],
                "back": back,
                "compA, compC": max(end["computed"] - end["received"] for end in (a, c)),
                "exchange": there + back,
                "step": a["computed"] - a["begin"],
            }
        )
    if len(found) <= WARM:
        sys.exit(f"{paths[0]} has {len(found)} steps, and the first {WARM} do not count: let it make more")
    return found[WARM:]


def marks(path):
    """The times of a component's marks, a dictionary for each step."""
    if not path.exists():
        sys.exit(f"{path} is not there; did the run succeed? Its log says.")
    with path.open() as lines:
        return [{name: float(time) for name, time in row.items()} for row in csv.DictReader(lines)]


def spread(times):
    return f"{statistics.mean(times):8.2f} {min(times):8.2f} {max(times):8.2f}"


def tell(runs):
    """A line for each run: mean, least and greatest time of a step, in milliseconds."""
    heads = ("a step", "exchanges, both ways", "there", "back")
    print(f"{'ranks each':22}" + "".join(f"{head:^30}" for head in heads) + "   GB/s")
    for run in runs:
        columns = "".join(f"{spread(run.of(part)):^30}" for part in ("step", "exchange", "there", "back"))
        print(f"{run.name():22}{columns} {run.megabytes / statistics.mean(run.of('exchange')):6.2f}")


def draw(runs, out):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "titin"})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 3.8), layout="constrained")

    for aggregated, colour in ((False, "#d1495b"), (True, "#1f5f8b")):
        some = [run for run in runs if run.aggregated == aggregated and len(set(run.ranks)) == 1]
        ranks, times = [run.ranks[0] for run in some], [run.of("exchange") for run in some]
        means = [statistics.mean(each) for each in times]
        reach = [
            [mean - min(each) for mean, each in zip(means, times)],
            [max(each) - mean for mean, each in zip(means, times)],
        ]
        label = "aggregated" if aggregated else "separate"
        left.errorbar(ranks, means, reach, marker="o", color=colour, capsize=3, label=label)
    left.set(xlabel="ranks of each component", ylabel="ms a step", ylim=(0, None))
    left.set_title("The exchanges of a step, both ways", loc="left")
    left.set_xticks(sorted({run.ranks[0] for run in runs}))
    left.legend(frameon=False)

    names = [run.name() for run in runs]
    begins = [0.0] * len(runs)
    for part, colour in zip(PARTS, COLOURS):
        means = [statistics.mean(run.of(part)) for run in runs]
        right.barh(names, means, left=begins, color=colour, label=part)
        begins = [begin + mean for begin, mean in zip(begins, means)]
    right.invert_yaxis()
    right.set(xlabel="ms a step")
    right.set_title("Where a step's time goes", loc="left")
    right.legend(frameon=False, ncols=4, loc="upper right", bbox_to_anchor=(1, -0.15))
    figure.savefig(out, metadata={"Date": None})


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
