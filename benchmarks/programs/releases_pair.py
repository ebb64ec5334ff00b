"""A ping-pong of titin, for the figures of one release. Arguments: ``answers``; or ``asks``, the sizes, the trips of
each size, and the file for the figures."""

import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import titin


def private(process: str) -> int:
    """The bytes of memory that a process has for itself, without pages of files that the system may drop."""
    rows = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(row.split()[1]) for row in rows if row.startswith("Private_Dirty"))


def of_titin() -> list[str]:
    """The processes of titin itself: those that run the command beside this Python."""
    command = (Path(sys.executable).parent / "titin").resolve()
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] and Path(os.fsdecode(words[0])).resolve() == command:
            found.append(process)
    return found


def answers() -> None:
    """Sends every message back. An empty message is the last one."""
    with titin.Instance(s=["in"], o_i=["out"]) as instance:
        while instance.reuse():
            while (message := instance.receive("in")).data.size > 0:
                instance.send("out", message.data, timestamp=0.0)


def asks(sizes: str, trips: str, path: str) -> None:
    """Times trips there and back, and takes the memory of titin's processes and of this program."""
    lines = []
    with titin.Instance(o_i=["out"], s=["in"]) as instance:
        while instance.reuse():
            for size in map(int, sizes.split(",")):
                message = np.ones(size, np.uint8)
                times = []
                for _ in range(int(trips)):
                    begin = time.perf_counter()
                    instance.send("out", message, timestamp=0.0)
                    instance.receive("in")
                    times.append(time.perf_counter() - begin)
                lines.append(f"{size} {statistics.median(times) / 2}\n")
            lines.append(f"titin {sum(map(private, of_titin()))}\n")
            lines.append(f"program {private('self')}\n")
            instance.send("out", np.zeros(0, np.uint8), timestamp=0.0)
    Path(path).write_text("".join(lines))


if sys.argv[1] == "answers":
    answers()
else:
    asks(*sys.argv[2:])
