"""Two sides in C that exchange messages, over titin or over a rival. One call is one run, and gives times by size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import native
from benchmarks.harness import HOSTED, MIB, stepping


@dataclass
class Task:
    """The task of the two sides, as ``programs/bench.h`` reads it."""

    #: "ping", "singly" (each trip is timed by itself, however small) or "stream".
    kind: str = "ping"
    reads: bool = False
    #: The share of the trips that is made: 1 for all, 4 for a quarter.
    share: int = 1
    largest: int = 64 * MIB

    @property
    def words(self) -> list[object]:
        """The arguments of the programs."""
        return [self.kind, int(self.reads), self.share, self.largest, native.RESULT]


def titin(
    task: Task,
    way: str = "view",
    *,
    medium: str | None = None,
    folder: Path | None = None,
    flags: Sequence[str] = (),
    settings: str = "",
) -> native.Times:
    """The sides with titin. ``way`` as in ``programs/pair_titin.c``, ``folder`` for messages through files, ``flags``
    for ``titin run``, ``settings`` of the model."""
    program = native.build("pair_titin")
    words = [way, *task.words]
    if medium == "inproc":
        text = stepping([(program, ["both", *words]), HOSTED])
    else:
        text = stepping([(program, [0, *words]), (program, [1, *words])])
    if medium in ("tcp", "file"):
        text += f"titin:\n  medium: {{c0.in: {medium}, c1.in: {medium}}}\n"
    if folder:
        text += f"  folder: {folder}\n"
    if settings:
        text += f"settings: {{{settings}}}\n"
    return native.coupled(text, *flags)


def other(task: Task, command: Sequence[object]) -> native.Times:
    """The sides with a rival that starts both sides itself."""
    return native.alone(*command, *task.words)


def mpis() -> dict[str, Sequence[object]]:
    """Both MPIs, over shared memory."""
    return {
        "Open MPI": [*native.OPEN_MPI, "-np", 2, native.rival("pair_mpi", "openmpi")],
        "MPICH": [*native.MPICH, "-np", 2, native.rival("pair_mpi", "mpich")],
    }


def window(way: str) -> Sequence[object]:
    """Memory that two processes share by MPI, with flags to say when it is filled; ``way`` as in
    ``programs/pair_window.c``."""
    return [*native.OPEN_MPI, "-np", 2, native.rival("pair_window", "openmpi"), way]


def zeromq(transport: str) -> Sequence[object]:
    """ZeroMQ over ``ipc`` or ``tcp``."""
    address = {"ipc": "ipc://{folder}/socket", "tcp": "tcp://127.0.0.1:*"}[transport]
    return [native.rival("pair_zmq", "zmq"), address]


def files(folder: Path) -> Sequence[object]:
    """Files in this folder, written under another name and renamed."""
    return [native.rival("pair_files", "plain"), folder]


def raw_socket() -> Sequence[object]:
    """One TCP socket."""
    return [native.rival("pair_tcp", "plain")]
