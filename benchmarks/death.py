"""The time from the death of one instance until the last of the other instances knows, beside MUSCLE3."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.harness import PROGRAMS, Record, alternate, compare, rival_python, scratch
from benchmarks.native import TITIN

PYTHON = Path(sys.executable)
WAITER = PROGRAMS / "waiter.py"


def model(python: Path, library: str, count: int, folder: Path) -> str:
    """The description of a ring of ``count`` instances, each of which waits for its neighbour for ever."""
    lines = [
        "ymmsl_version: v0.2",
        "description: Everybody waits, until one dies.",
        "models:",
        "  ring:",
        "    components:",
    ]
    for number in range(count):
        lines += [
            f"      c{number}:",
            "        description: waits",
            "        ports: {o_i: out, s: in}",
            f"        implementation: p{number}",
        ]
    lines.append("    conduits:")
    lines += [f"      c{number}.out: c{(number + 1) % count}.in" for number in range(count)]
    if count == 2:
        lines.append("    matching_timelines: {c0: c1}")
    else:
        lines.append("    matching_timelines:")
        lines += [f"      c{number}: c{number + 1}" for number in range(count - 1)]
    lines.append("programs:")
    for number in range(count):
        lines += [
            f"  p{number}:",
            f"    executable: {python}",
            f"    args: [{WAITER}, {library}, {folder}/{number}]",
        ]
    return "\n".join(lines) + "\n"


def kill_one(command: list[str | Path], folder: Path, count: int) -> float:
    """Starts the ring, kills its first instance, and returns the seconds until the last of the other instances has its
    error."""
    with subprocess.Popen(
        [str(word) for word in command], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        while not all((folder / f"{number}.pid").exists() for number in range(count)):
            if run.poll() is not None:
                raise SystemExit(f"{command[0]} ended before the ring was complete, see {folder}")
            time.sleep(0.01)
        time.sleep(0.3)
        pids = [int((folder / f"{number}.pid").read_text()) for number in range(count)]
        # This process sleeps while it watches: there are few cores, and the dying programs need them.
        handles = {os.pidfd_open(pid): pid for pid in pids[1:]}
        poll = select.poll()
        for handle in handles:
            poll.register(handle, select.POLLIN)
        begin = time.time()
        os.kill(pids[0], signal.SIGKILL)
        gone = {}
        while handles:
            for handle, _ in poll.poll():
                gone[handles.pop(handle)] = time.time()
                poll.unregister(handle)
                os.close(handle)
        run.wait()
    ends = []
    for number, pid in enumerate(pids[1:], start=1):
        error = folder / f"{number}.error"
        # A program that was killed before it had its error has written none.
        ends.append(float(error.read_text()) if error.exists() else gone[pid])
    return max(ends) - begin


def titin(count: int) -> float:
    """Seconds until the last error in a ring of titin."""
    with scratch() as name:
        folder = Path(name)
        (folder / "ring.ymmsl").write_text(model(PYTHON, "titin", count, folder))
        return kill_one([TITIN, "run", "ring.ymmsl", "--run-dir", folder / "run"], folder, count)


def muscle3(count: int) -> float:
    """Seconds until the last error in a ring of MUSCLE3."""
    python = rival_python()
    with scratch() as name:
        folder = Path(name)
        (folder / "run").mkdir()
        (folder / "ring.ymmsl").write_text(model(python, "muscle3", count, folder))
        manager = python.parent / "muscle_manager"
        return kill_one([manager, "--start-all", "--run-dir", folder / "run", "ring.ymmsl"], folder, count)


def main(quick: bool) -> list[Record]:
    """Measures 2 and 50 instances: 100 kills with titin, and fewer with MUSCLE3, which starts slowly.

    MUSCLE3's planner does not start 50 instances that compute at once on fewer cores. So 50 instances of titin stand
    beside 2 instances of MUSCLE3.
    """
    question = "From the kill -9 of an instance to the last error of the others"
    records = []
    for count in [2, 50]:
        kills, beside = (10, 3) if quick else (100, 15 if count == 2 else 6)
        ours: Callable[[], float] = lambda n=count: titin(n)  # type: ignore[misc]
        pairs = alternate(beside, ours, lambda: muscle3(2))
        alone = [ours() for _ in range(kills - beside)]
        case, rival = f"{count} instances", "MUSCLE3 0.11, 2 instances"
        records.append(compare(question, case, pairs, alone=alone, rival=rival, unit="s", limit=0.1))
    return records
