"""Pictures of a profile, by matplotlib."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing

from libmuscle.profile_database import ProfileDatabase
from matplotlib import pyplot
from matplotlib.axes import Axes

#: The events of a timeline, with their colours; those of a receive lie within it.
_COLOURS = {
    "REGISTER": "tab:brown",
    "CONNECT": "tab:pink",
    "SEND": "tab:blue",
    "RECEIVE_WAIT": "lightgrey",
    "RECEIVE_TRANSFER": "tab:orange",
    "RECEIVE_DECODE": "tab:olive",
    "SHUTDOWN_WAIT": "mistyrose",
    "DISCONNECT_WAIT": "thistle",
    "SHUTDOWN": "tab:pink",
    "DEREGISTER": "tab:brown",
}
#: Beyond so many events of a type, a timeline shows the longest.
_MOST = 20_000


def instances(file: str) -> None:
    """Seconds that each instance computed, communicated and waited."""
    with ProfileDatabase(file) as database:
        names, *parts = database.instance_stats()
    _, axes = pyplot.subplots(layout="constrained")
    below = [0.0] * len(names)
    for label, times in zip(("computes", "sends and receives", "waits"), parts, strict=True):
        axes.bar(names, times, 0.6, bottom=below, label=label)
        below = [low + time for low, time in zip(below, times, strict=True)]
    _finish(axes, "Instances", "s")


def cores(file: str) -> None:
    """Seconds for which each core was used, by instance."""
    with ProfileDatabase(file) as database:
        stats = database.resource_stats()
    _, axes = pyplot.subplots(layout="constrained")
    names = sorted(stats)
    below = dict.fromkeys(names, 0.0)
    for instance in sorted({one for core in stats.values() for one in core}):
        times = [stats[name].get(instance, 0.0) for name in names]
        axes.bar(names, times, 0.6, bottom=[below[name] for name in names], label=instance)
        for name, time in zip(names, times, strict=True):
            below[name] += time
    _finish(axes, "Cores", "s")


def timeline(file: str) -> None:
    """What each instance did when. Seconds from the first event."""
    with closing(sqlite3.connect(file)) as database:
        names = [name for (name,) in database.execute("SELECT name FROM instances ORDER BY oid")]
        (begin,) = database.execute("SELECT MIN(start_time) FROM events").fetchone()
        _, axes = pyplot.subplots(layout="constrained")
        for kind, colour in _COLOURS.items():
            rows = database.execute(
                "SELECT instance, start_time, stop_time FROM all_events WHERE type = ? "
                "ORDER BY stop_time - start_time DESC LIMIT ?",
                (kind, _MOST),
            ).fetchall()
            if rows:
                of, starts, stops = zip(*rows, strict=True)
                widths = [(stop - start) * 1e-9 for start, stop in zip(starts, stops, strict=True)]
                left = [(start - begin) * 1e-9 for start in starts]
                axes.barh([names.index(name) for name in of], widths, 0.8, left=left, color=colour, label=kind)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("s")
    axes.set_title("Timeline")
    if axes.get_legend_handles_labels()[0]:
        axes.legend()


def can_show() -> bool:
    """Whether there is a display, or the user has chosen how pictures come out."""
    # Without either, matplotlib chooses the backend that shows nothing.
    return bool(os.environ.get("MPLBACKEND")) or pyplot.get_backend().lower() != "agg"


def show() -> None:
    """Shows the pictures on the screen, and waits until the user has closed them."""
    pyplot.show()


def _finish(axes: Axes, title: str, unit: str) -> None:
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.tick_params(axis="x", labelrotation=45)
    if axes.get_legend_handles_labels()[0]:
        axes.legend()
