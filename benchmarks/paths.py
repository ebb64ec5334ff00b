"""Messages by a path over a long line, beside raw TCP sockets and iperf3.

The line is emulated (`sites`). The environment variable ``TITIN_PATHS`` chooses parts: lines such as
``37.6/0.01/cubic`` (milliseconds of a round trip, percent of loss, congestion control), ``streams`` and ``loopback``.
``TITIN_PATHS_ROUNDS``, ``TITIN_PATHS_LARGEST`` (in bytes) and ``TITIN_PATHS_BEFORE`` allow for a shorter measurement.

A coupled run uses its path for hours. TCP sends fast until it meets its first losses, and slower ever after, so each
contender sends for some seconds before it is measured (`BEFORE`).
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import harness, native
from benchmarks.harness import KIB, MIB, RESULTS, ROOT, Figures, Record, compare, run, scratch, sweep
from benchmarks.lines import (
    AIMED,
    BEST,
    KB,
    LARGE,
    PATIENCE,
    SIZES,
    SMALL,
    SPREAD,
    Cell,
    address,
    counted,
    iperf_name,
    named,
)
from benchmarks.picture import over_streams
from benchmarks.sites import NAME, Site, line, prepare

#: The environment variables that choose parts, the number of rounds, the largest message, and the seconds before.
VARIABLE, ROUNDS, LARGEST = "TITIN_PATHS", "TITIN_PATHS_ROUNDS", "TITIN_PATHS_LARGEST"
BEFORE = "TITIN_PATHS_BEFORE"
QUESTION = "A message by a path over a long line of 1 Gbit/s, half of a ping-pong"
STREAMS = "A message of 64 MB by a path over a long line by numbers of streams, half of a ping-pong"
DEFAULT = "A message of 64 MB by a path with the default streams over a long line, beside fixed numbers"
LOOPBACK = "A message by a path between two programs on the loopback interface, half of a ping-pong"

CELLS = [Cell(rtt, 0.01, control) for control in ("cubic", "bbr") for rtt in (2.1, 37.6, 273)]
OF_STREAMS = [Cell(rtt, 0.01, "cubic") for rtt in (2.1, 37.6, 273)]
#: The sockets of MPWide's method beside a path with the default streams, and the numbers of streams of `STREAMS`.
PARALLEL = [1, 8, 64]
FIXED = [1, 4, 16, 64]

RAW, SPINNING = "one raw TCP socket", "one raw TCP socket, spinning"
#: The ratio to the best fixed number of streams.
NEAR_BEST = 1.05
#: The ratio to a raw socket for a small message on the loopback interface.
NEXT_TO_RAW = 1.1
#: The seconds for which iperf3 is measured.
SENDING = 10
#: Each run has a port of its own.
PORTS = itertools.count(4720)

#: What a contender gives in a round: milliseconds by size.
Figure = Mapping[Any, float]


def main(quick: bool) -> list[Record]:
    """Measures the chosen parts. Records of other parts are kept."""
    prepare("iperf3:iperf3", "taskset:util-linux")
    known = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    parts: dict[str, Callable[[bool], list[Record]]] = {"loopback": loopback}
    parts |= {
        str(cell): lambda quick, cell=cell: message(cell, quick)  # type: ignore[misc]
        for cell in CELLS
        if cell.control in known
    }
    parts |= {
        f"streams/{cell}": lambda quick, cell=cell: streams(cell, quick)  # type: ignore[misc]
        for cell in OF_STREAMS
    }
    found = harness.in_parts("paths", VARIABLE, parts, "37.6/0.01/cubic loopback" if quick else "", quick)
    if not quick:
        draw(found)
    return found


def message(cell: Cell, quick: bool) -> list[Record]:
    """Messages of all sizes over one kind of line."""
    largest = int(os.environ.get(LARGEST, AIMED if quick else SIZES[-1]))
    sizes = [size for size in SIZES if size <= largest]
    with scratch() as name, line(NAME, cell.rtt, cell.loss, cell.control) as ends:
        folder = Path(name)
        contenders: dict[str, Callable[[], Figure]] = {
            "titin": Pair("titin", folder, ends, sizes, before=before(quick))
        }
        for count in PARALLEL:
            contenders[sockets(count)] = Pair("tcp", folder, ends, sizes, streams=count, before=before(quick))
        for count in PARALLEL:
            contenders[iperf_name(count)] = Iperf(ends, count, [size for size in sizes if size >= LARGE], before(quick))
        figures = sweep(rounds(quick), contenders)
    return message_records(cell, sizes, figures)


def message_records(cell: Cell, sizes: Sequence[int], figures: Figures) -> list[Record]:
    """The records of a kind of line. The best ping-pong over sockets has the target for large messages, if its rounds
    are near each other; iperf3 sends without a pause."""
    found = []
    ours = figures["titin"]
    for size in sizes:
        rivals = {name: of_size[size] for name, of_size in figures.items() if name != "titin" and size in of_size}
        medians = {name: statistics.median(times) for name, times in rivals.items() if not name.startswith("iperf3")}
        best = min(medians, key=lambda name: medians[name]) if medians else None
        for name, times in rivals.items() if size in ours else ():
            near = max(times) - min(times) <= SPREAD * statistics.median(times)
            target = BEST if name == best and size >= AIMED and near else None
            case = f"{cell.text}: {named(size)}"
            pairs = list(zip(ours[size], times))
            # With a size, the table leaves the row out.
            kept = None if size in (KB, AIMED) else size
            found.append(compare(QUESTION, case, pairs, rival=name, unit="ms", size=kept, target=target))
    return found


def streams(cell: Cell, quick: bool) -> list[Record]:
    """Fixed numbers of streams beside as many sockets and as many streams of iperf3, and beside the default."""
    with scratch() as name, line(NAME, cell.rtt, cell.loss, cell.control) as ends:
        folder, sizes = Path(name), [AIMED]
        contenders: dict[str, Callable[[], Figure]] = {
            "titin": Pair("titin", folder, ends, sizes, before=before(quick))
        }
        for count in FIXED:
            contenders[f"titin, {count}"] = Pair("titin", folder, ends, sizes, streams=count, before=before(quick))
            contenders[sockets(count)] = Pair("tcp", folder, ends, sizes, streams=count, before=before(quick))
            contenders[iperf_name(count)] = Iperf(ends, count, sizes, before(quick))
        figures = sweep(rounds(quick), contenders)
    times = {name: of_size[AIMED] for name, of_size in figures.items()}
    found = []
    for count in FIXED:
        for rival in (sockets(count), iperf_name(count)):
            pairs = list(zip(times[f"titin, {count}"], times[rival]))
            found.append(compare(STREAMS, f"{cell.text}: {counted(count)}", pairs, rival=rival, unit="ms"))
    fixed = {f"titin, {counted(count)}": times[f"titin, {count}"] for count in FIXED}
    case = f"{cell.text}: default streams"
    return found + harness.beside_all(DEFAULT, case, {"titin": times["titin"]} | fixed, unit="ms", target=NEAR_BEST)


def loopback(quick: bool) -> list[Record]:
    """Small and large messages on the loopback interface by a plain path and by a session.

    For small messages each program keeps to a core of its own, since it matters much where the system puts the two.
    """
    found = []
    for size, pinned in ((SMALL, True), (KIB, True), (64 * MIB, False)):
        with scratch() as name:
            folder = Path(name)
            here, there = [["taskset", "-c", str(core)] for core in cores()] if pinned else [[], []]
            ends = [Site("here", "", "127.0.0.1:0", here), Site("there", "", "127.0.0.1:0", there)]
            figures = sweep(
                3 if quick else 13,
                {
                    RAW: Pair("tcp", folder, ends, [size], streams=1),
                    SPINNING: Pair("tcp", folder, ends, [size], streams=-1),
                    "plain": Pair("titin", folder, ends, [size], kind="tcp:"),
                    "session": Pair("titin", folder, ends, [size], kind="session:"),
                },
            )
        times = {name: [1000 * time for time in of_size[size]] for name, of_size in figures.items()}
        for kind in ("plain", "session"):
            case, of_kind = f"{kind}: {harness.named(size)}", {"titin": times[kind]}
            target = NEXT_TO_RAW if kind == "plain" and size == SMALL else None
            of_kind |= {rival: times[rival] for rival in (RAW, SPINNING)}
            found += harness.beside_all(LOOPBACK, case, of_kind, unit="µs", target=target)
    return found


class Pair:
    """Runs of a program of ``paths`` at both ends: the milliseconds of a message one way, by its size."""

    def __init__(
        self,
        medium: str,
        folder: Path,
        ends: Sequence[Site],
        sizes: Sequence[int],
        *,
        streams: int = 0,
        before: float = 0,
        kind: str = "session:",
    ) -> None:
        """The first end opens. ``medium`` is ``titin``, for which ``streams`` may be 0 for titin's choice, and ``kind``
        is the kind of the path; or ``tcp``, for which -1 is one socket that is read without waiting. ``before`` are the
        seconds for which large messages go to and fro first."""
        self.program = native.build("paths_titin") if medium == "titin" else native.rival("paths_tcp", "threads")
        self.kind = kind if medium == "titin" else ""
        self.folder, self.ends, self.sizes, self.streams, self.before = folder, ends, sizes, streams, before

    def __call__(self) -> Figure:
        """Opens a path or sockets, plays all sizes, and ends."""
        here, there = self.ends
        place = f"{there.host}:{next(PORTS)}" if there.host != "127.0.0.1" else address()
        times, environment = self.folder / "times", {"TITIN_PATH_KEY": str(key(self.folder))}
        answering = [*there.front, self.program, "there", place, self.streams]
        with subprocess.Popen(list(map(str, answering)), env=os.environ | environment) as other:
            try:
                sizes = ",".join(map(str, self.sizes))
                playing = [self.program, "here", f"{self.kind}{place}", self.streams, sizes]
                playing += [self.before, PATIENCE, times]
                run([*here.front, *playing], self.folder, **environment)
                if other.wait(60):
                    raise SystemExit(f"{self.program.name} failed at the end that answers")
            finally:
                other.kill()
        figure = {size: time / 1000 for size, time in native.times(times).items()}
        # The next rounds leave out what took too long, so that the rounds of a size belong together.
        self.sizes = [size for size in self.sizes if size in figure]
        return figure


class Iperf:
    """iperf3 with a number of streams, after it has sent for some seconds: the milliseconds for a number of bytes."""

    def __init__(self, ends: Sequence[Site], streams: int, sizes: Sequence[int], before: float) -> None:
        """The first end sends."""
        self.ends, self.streams, self.sizes, self.before = ends, streams, sizes, before

    def __call__(self) -> Figure:
        """Sends for some seconds more, and takes the rate at the receiver."""
        here, there = self.ends
        with subprocess.Popen([*there.front, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL) as server:
            try:
                time.sleep(0.3)
                words = ["-c", there.host, "-P", self.streams, "-O", round(self.before), "-t", SENDING, "-J"]
                said = json.loads(run([*here.front, "iperf3", *words], ROOT))
            finally:
                server.kill()
        rate = said["end"]["sum_received"]["bits_per_second"]
        return {size: 1000 * 8 * size / rate for size in self.sizes}


def key(folder: Path) -> Path:
    """The file with the key of the paths; the first call makes it."""
    path = folder / "key"
    if not path.exists():
        run([native.TITIN, "path", "key", path], folder)
    return path


def cores() -> list[int]:
    """A core for each of two programs."""
    free = sorted(os.sched_getaffinity(0))
    return [free[0], free[-1]]


def before(quick: bool) -> float:
    """The seconds for which each contender sends before it is measured."""
    return 5 if quick else float(os.environ.get(BEFORE, "30"))


def rounds(quick: bool) -> int:
    """The number of rounds over a long line."""
    return 1 if quick else int(os.environ.get(ROUNDS, "3"))


def sockets(count: int) -> str:
    """The name of raw sockets as a contender."""
    return RAW if count == 1 else f"{count} raw TCP sockets, MPWide's method"


def draw(found: Sequence[Record]) -> None:
    """Draws the throughput by the number of streams."""
    panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for record in found:
        if record.question == STREAMS:
            cell, _, streams = record.case.partition(": ")
            count = int(streams.split()[0])
            rival = "iperf3" if record.rival_name.startswith("iperf3") else "raw TCP sockets, MPWide's method"
            panel = panels.setdefault(cell, {})
            for name, milliseconds in (("titin", record.titin), (rival, record.rival)):
                points = panel.setdefault(name, [])
                if (point := (count, 8 * AIMED / milliseconds / 1000)) not in points:
                    points.append(point)
        if record.question == DEFAULT:
            cell = record.case.partition(": ")[0]
            rate = 8 * AIMED / record.titin / 1000
            panels.setdefault(cell, {})["titin, default"] = [(count, rate) for count in FIXED]
    if panels:
        # The lines in the order of their round trips.
        ordered = sorted(panels.items(), key=lambda panel: float(panel[0].split()[0]))
        over_streams(RESULTS / "paths.svg", dict(ordered))
