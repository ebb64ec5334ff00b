"""Two sides in C that exchange messages, over titin or over a rival: one call is one run, and finds times by size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import native
from benchmarks.harness import HOSTED, MIB, run, scratch, stepping

#: Runs once; microseconds for a message, by bytes.
Times = Callable[[], dict[int, float]]


@dataclass
class Task:
    """What the two sides are to do, as ``programs/bench.h`` reads it."""

    #: "ping", "singly" (each trip is timed by itself, however small) or "stream".
    kind: str = "ping"
    reads: bool = False
    #: The share of the trips that is made: 1 is all, 4 a quarter.
    share: int = 1
    largest: int = 64 * MIB

    def words(self, folder: Path) -> list[object]:
        """The arguments; times go to a file in the folder."""
        return [self.kind, int(self.reads), self.share, self.largest, folder / "times"]


def titin(
    task: Task, way: str = "view", *, medium: str | None = None, flags: Sequence[str] = (), settings: str = ""
) -> Times:
    """With titin; ``way`` as in ``programs/pair_titin.c``, ``flags`` for ``titin run``, ``settings`` of the model."""
    program = native.build("pair_titin")

    def once() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            words = [way, *task.words(folder)]
            if medium == "inproc":
                text = stepping([(program, ["both", *words]), HOSTED])
            else:
                text = stepping([(program, [0, *words]), (program, [1, *words])])
            if medium == "tcp":
                text += f"titin:\n  medium: {{c0.in: {medium}, c1.in: {medium}}}\n"
            if settings:
                text += f"settings: {{{settings}}}\n"
            native.titin_run(text, folder, *flags)
            return native.times(folder / "times")

    return once


def other(task: Task, command: Sequence[object]) -> Times:
    """With a rival that starts both sides itself; ``{folder}`` in a word stands for the folder of the run."""

    def once() -> dict[int, float]:
        with scratch() as name:
            folder = Path(name)
            words = [str(word).format(folder=folder) for word in command]
            run([*words, *task.words(folder)], folder)
            return native.times(folder / "times")

    return once


def mpis() -> dict[str, Sequence[object]]:
    """Both MPIs, over shared memory."""
    return {
        "Open MPI": [*native.OPEN_MPI, "-np", 2, native.rival("pair_mpi", "openmpi")],
        "MPICH": [*native.MPICH, "-np", 2, native.rival("pair_mpi", "mpich")],
    }


def window(way: str) -> Sequence[object]:
    """Memory that two processes share by MPI, with flags; ``way`` as in ``programs/pair_window.c``."""
    return [*native.OPEN_MPI, "-np", 2, native.rival("pair_window", "openmpi"), way]


def zeromq(transport: str) -> Sequence[object]:
    """ZeroMQ over ``ipc`` or ``tcp``."""
    address = {"ipc": "ipc://{folder}/socket", "tcp": "tcp://127.0.0.1:*"}[transport]
    return [native.rival("pair_zmq", "zmq"), address]


def raw_socket() -> Sequence[object]:
    """One TCP socket."""
    return [native.rival("pair_tcp", "plain")]
