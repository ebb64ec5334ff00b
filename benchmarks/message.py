"""The cost of a message between two programs in C, one way, by size, beside other ways to carry it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import native
from benchmarks.harness import KIB, MIB, RESULTS, Figures, Record, compare, named, scratch, sweep
from benchmarks.pairs import Task, mpis, other, raw_socket, titin, window, zeromq
from benchmarks.picture import curves

SIZES = [0] + [KIB << power for power in range(17)]

UNREAD = "One message between two programs in C, one way"
READ = "One message between two programs in C, one way, every byte read by the receiver"
TCP = "One message between two programs in C, one way, TCP on the loopback interface"
WITHIN = "One message between two instances in one program in C, one way, beside two processes with MPI"


def main(quick: bool) -> list[Record]:
    """Runs each way of titin and each rival once in every round."""
    rounds, share = (2, 8) if quick else (13, 1)
    unread, read, singly = Task(share=share), Task(share=share, reads=True), Task("singly", share=share)
    # Many times slower than the others. With all trips these rivals would take half of the time and be known no better.
    slowly = Task(share=4 * share)
    both = mpis()
    windows = {"loan": "MPI window, in place", "into": "MPI window, copied in and out"}
    others = both | {"raw socket": raw_socket()}
    figures = sweep(
        rounds,
        {
            "send and view": titin(unread),
            "send and receive_into": titin(unread, "into"),
            "loan and view": titin(unread, "loan"),
            "loan and view, read": titin(read, "loan"),
            "loan and view, singly": titin(singly, "loan"),
            "send and view, read": titin(read),
            "send and view by tcp": titin(unread, medium="tcp"),
            "send and view by inproc": titin(unread, medium="inproc"),
            **{name: other(unread, command) for name, command in others.items()},
            **{f"ZeroMQ {transport}": other(slowly, zeromq(transport)) for transport in ("ipc", "tcp")},
            **{name: other(unread, window(way)) for way, name in windows.items()},
            **{f"{name}, read": other(read, command) for name, command in both.items()},
            "file copy": file_copy(2 * share),
        },
    )
    found = records(UNREAD, "send and view", figures, [*both, "ZeroMQ ipc", "ZeroMQ tcp", "file copy"])
    found += records(UNREAD, "send and receive_into", figures, [*both, windows["into"]])
    found += records(UNREAD, "loan and view", figures, [*both, windows["loan"]])
    for way in ("send and view, read", "loan and view, read"):
        found += records(READ, way, figures, [f"{name}, read" for name in both])
    found += records(TCP, "send and view by tcp", figures, ["raw socket", "ZeroMQ tcp"])
    found += records(WITHIN, "send and view by inproc", figures, list(both))
    for case, target in [
        ("send and view, 0 B", 1.2),
        ("send and view, 1 KiB", 1.2),
        ("send and view, 64 MiB", 0.55),
        ("send and view, read, 64 MiB", 0.75),
        ("send and view by tcp, 64 MiB", 1.05),
    ]:
        aim(found, case, target)
    found.append(growth(figures["loan and view, singly"]))
    if not quick:
        draw(found)
    return found


def growth(lent: dict[int, list[float]]) -> Record:
    """How much more 64 MiB of lent memory cost than 1 KiB: next to nothing is wanted. The record stands beside 1 KiB
    itself.

    Both sizes are timed trip by trip, so that both times include the calls of the clock.
    """
    pairs = [(large - small, small) for large, small in zip(lent[64 * MIB], lent[KIB])]
    case, rival = "loan and view, 64 MiB less 1 KiB", "titin, loan and view, 1 KiB, timed singly"
    return compare(UNREAD, case, pairs, rival=rival, unit="µs", limit=2.0)


def file_copy(share: int) -> native.Times:
    """Times files on the disk, which the system caches: a round trip is a copy of a file, and a copy back."""

    def copy(source: Path, target: Path) -> None:
        _, status = os.waitpid(os.posix_spawnp("cp", ["cp", str(source), str(target)], os.environ), 0)
        if status:
            raise SystemExit(f"cp {source} {target} failed")

    def once() -> dict[int, float]:
        with scratch(native.FOLDER) as name:
            there, back = Path(name) / "there", Path(name) / "back"
            found = {}
            for size in SIZES:
                there.write_bytes(bytes(size))
                trips = max(2, (10 if size <= MIB else 3) // share)
                begin = time.perf_counter()
                for _ in range(trips):
                    copy(there, back)
                    copy(back, there)
                found[size] = 1e6 * (time.perf_counter() - begin) / trips / 2
            return found

    return once


def records(question: str, ours: str, figures: Figures, rivals: Sequence[str]) -> list[Record]:
    """A record for each size and rival, without targets."""
    found = []
    for size in SIZES:
        for rival in rivals:
            pairs = list(zip(figures[ours][size], figures[rival][size]))
            found.append(compare(question, f"{ours}, {named(size)}", pairs, rival=rival, unit="µs", size=size))
    return found


def aim(found: Sequence[Record], case: str, target: float) -> None:
    """Sets the target of a case, in the record beside the fastest rival."""
    min((record for record in found if record.case == case), key=lambda record: record.rival).target = target


def draw(found: Sequence[Record]) -> None:
    """Draws the curves of all sizes."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for record in found:
        if record.question != READ and record.size_bytes is not None:
            ours = f"titin, {record.case.rpartition(', ')[0]}"
            lines.setdefault(ours, []).append((record.size_bytes or 0, record.titin))
            lines.setdefault(record.rival_name, []).append((record.size_bytes or 0, record.rival))
    ordered = {name: sorted(set(lines[name])) for name in sorted(lines, key=lambda name: not name.startswith("titin"))}
    curves(RESULTS / "message.svg", UNREAD, ordered)


def fitted(found: Sequence[Record], case: str, rival: str | None = None) -> tuple[float, float]:
    """The least time of a message in µs, and MB/s of a linear fit of time over size, as the MUSCLE 2 paper gives
    them."""
    rows = [(record.size_bytes or 0, record.titin) for record in found if record.case.startswith(case)]
    if rival:
        rows = [(record.size_bytes or 0, record.rival) for record in found if record.rival_name == rival]
    slope = statistics.linear_regression([size for size, _ in rows], [time for _, time in rows]).slope
    return min(time for _, time in rows), 1 / slope
