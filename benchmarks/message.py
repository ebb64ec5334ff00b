"""What a message costs between two programs in C, one way, by size, next to what else could carry it."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import native
from benchmarks.harness import HOSTED, KIB, MIB, RESULTS, Figures, Record, compare, named, run, scratch, stepping, sweep
from benchmarks.picture import curves

LARGEST = 64 * MIB
SIZES = [0] + [KIB << power for power in range(17)]

Sweep = Callable[[], dict[int, float]]

UNREAD = "One message between two programs in C, one way"
READ = "One message between two programs in C, one way, every byte read by the receiver"
WITHIN = "One message between two instances in one program in C, one way, beside two processes with MPI"
TCP = "One message between two programs in C, one way, TCP on the loopback interface"


def titin(way: str, *, reads: bool = False, medium: str | None = None, share: int = 1) -> Sweep:
    """A sweep over all sizes with titin; ``way`` as in programs/pair_titin.c."""
    program = native.build("pair_titin")

    def once() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            task = [way, "ping", int(reads), share, LARGEST, folder / "times"]
            if medium == "inproc":
                text = stepping([(program, ["both", *task]), HOSTED])
            else:
                text = stepping([(program, [0, *task]), (program, [1, *task])])
            if medium == "tcp":
                text += f"titin:\n  medium: {{c0.in: {medium}, c1.in: {medium}}}\n"
            native.titin_run(text, folder)
            return native.times(folder / "times")

    return once


def other(command: Sequence[object], *, reads: bool = False, share: int = 1) -> Sweep:
    """A sweep with a rival that starts both sides itself; ``{folder}`` in a word stands for the folder of the round."""

    def once() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            words = [str(word).format(folder=folder) for word in command]
            task = ["ping", int(reads), share, LARGEST, folder / "times"]
            run([*words, *(str(word) for word in task)], folder)
            return native.times(folder / "times")

    return once


def file_copy(share: int) -> Sweep:
    """The same with files on the disk, which the system caches: a round trip is a copy of a file, and a copy back."""

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
                trips = max(2, (20 if size <= MIB else 4) // share)
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


def aim(found: Sequence[Record], case: str, target: float, rivals: Sequence[str]) -> None:
    """Sets the target of a case beside the faster of these rivals."""
    rows = [record for record in found if record.case == case and record.rival_name in rivals]
    min(rows, key=lambda record: record.rival).target = target


def main(quick: bool) -> list[Record]:
    """All ways of titin's and all rivals, a sweep each in every round."""
    rounds, share = (2, 8) if quick else (15, 1)
    openmpi, mpich = native.rival("pair_mpi", "openmpi"), native.rival("pair_mpi", "mpich")
    zmq, plain = native.rival("pair_zmq", "zmq"), native.rival("pair_tcp", "plain")
    mpis: dict[str, Sequence[object]] = {
        "Open MPI": [*native.OPEN_MPI, "-np", "2", openmpi],
        "MPICH": [*native.MPICH, "-np", "2", mpich],
    }
    others: dict[str, Sequence[object]] = {
        "ZeroMQ ipc": [zmq, "ipc://{folder}/socket"],
        "ZeroMQ tcp": [zmq, "tcp://127.0.0.1:*"],
        "raw socket": [plain],
    }
    read = {f"{name}, read": other(command, reads=True, share=share) for name, command in mpis.items()}
    figures = sweep(
        rounds,
        {
            "send and view": titin("view", share=share),
            "send and receive_into": titin("into", share=share),
            "send and view, read": titin("view", reads=True, share=share),
            "send and view by tcp": titin("view", medium="tcp", share=share),
            "send and view by inproc": titin("view", medium="inproc", share=share),
            **{name: other(command, share=share) for name, command in (mpis | others).items()},
            **read,
            "file copy": file_copy(share),
        },
    )
    unread = records(UNREAD, "send and view", figures, [*mpis, "ZeroMQ ipc", "ZeroMQ tcp", "file copy"])
    unread += records(UNREAD, "send and receive_into", figures, list(mpis))
    for case, target in [("0 B", 1.0), ("1 KiB", 1.0), ("64 MiB", 0.55)]:
        aim(unread, f"send and view, {case}", target, list(mpis))
    all_read = records(READ, "send and view, read", figures, list(read))
    aim(all_read, "send and view, read, 64 MiB", 0.75, list(read))
    tcp = records(TCP, "send and view by tcp", figures, ["raw socket", "ZeroMQ tcp"])
    aim(tcp, "send and view by tcp, 64 MiB", 1.05, ["raw socket"])
    within = records(WITHIN, "send and view by inproc", figures, list(mpis))
    found = unread + all_read + tcp + within
    if not quick:
        draw(found)
    return found


def draw(found: Sequence[Record]) -> None:
    """The curves of all sizes."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for record in found:
        if record.question != READ:
            ours = f"titin, {record.case.rpartition(', ')[0]}"
            lines.setdefault(ours, []).append((record.size_bytes or 0, record.titin))
            lines.setdefault(record.rival_name, []).append((record.size_bytes or 0, record.rival))
    ordered = {name: sorted(set(lines[name])) for name in sorted(lines, key=lambda name: not name.startswith("titin"))}
    curves(RESULTS / "message.svg", UNREAD, ordered)


def fitted(found: Sequence[Record], case: str, rival: str | None = None) -> tuple[float, float]:
    """The least time of a message in µs, and MB/s of a linear fit of time over size, as the MUSCLE 2 paper has them."""
    rows = [(record.size_bytes or 0, record.titin) for record in found if record.case.startswith(case)]
    if rival:
        rows = [(record.size_bytes or 0, record.rival) for record in found if record.rival_name == rival]
    slope = statistics.linear_regression([size for size, _ in rows], [time for _, time in rows]).slope
    return min(time for _, time in rows), 1 / slope
