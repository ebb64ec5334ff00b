"""Curves of time over size, for questions where a table of a few sizes says too little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

#: Hues that colour-blind people can tell apart, after Okabe and Ito (2008); the first hue is titin's.
HUES = ["#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7", "#999999", "#000000", "#882255", "#44aa99"]


def curves(path: Path, title: str, lines: Mapping[str, Sequence[tuple[int, float]]], unit: str = "µs") -> None:
    """Draws a line for each name: time over size in bytes, both logarithmic. The lines of titin are thick."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "titin", "font.family": "sans-serif"}):
        figure, axes = pyplot.subplots(figsize=(8, 5))
        for number, (name, points) in enumerate(lines.items()):
            ours = name.startswith("titin")
            # An empty message has no place on a logarithmic axis, so its point is left of all others.
            sizes = [size or 256 for size, _ in points]
            style = {"linewidth": 2.4, "zorder": 3} if ours else {"linewidth": 1.2, "linestyle": "--"}
            axes.plot(sizes, [time for _, time in points], label=name, color=HUES[number % len(HUES)], **style)
        axes.set(xscale="log", yscale="log", title=title, ylabel=unit)
        ticks = [256, 1 << 10, 1 << 13, 1 << 16, 1 << 20, 1 << 23, 1 << 26]
        axes.set_xticks(ticks, ["0 B", "1 KiB", "8 KiB", "64 KiB", "1 MiB", "8 MiB", "64 MiB"])
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)


def over_streams(path: Path, panels: Mapping[str, Mapping[str, Sequence[tuple[int, float]]]]) -> None:
    """Draws a panel for each line, with a curve for each name: Mbit/s over the number of streams."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "titin", "font.family": "sans-serif"}):
        figure, all_axes = pyplot.subplots(1, len(panels), figsize=(4 * len(panels), 4), sharey=True, squeeze=False)
        names = sorted({name for curves in panels.values() for name in curves}, key=lambda name: (name[0] != "t", name))
        for axes, (title, curves) in zip(all_axes[0], panels.items(), strict=True):
            for name, points in curves.items():
                ours = name.startswith("titin")
                style = {"linewidth": 2.4, "zorder": 3} if ours else {"linewidth": 1.2, "linestyle": "--"}
                hue = HUES[names.index(name)]
                axes.plot([x for x, _ in points], [y for _, y in points], label=name, color=hue, marker=".", **style)
            axes.set(xscale="log", title=title, xlabel="streams")
            ticks = sorted({x for points in curves.values() for x, _ in points})
            axes.set_xticks(ticks, [str(x) for x in ticks])
            axes.minorticks_off()
            axes.grid(alpha=0.3)
        all_axes[0][0].set_ylabel("Mbit/s")
        all_axes[0][0].set_ylim(bottom=0)
        all_axes[0][0].legend(frameon=False, fontsize=8)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
