"""Ten thousand rows over four members: all are there, and the memory does not grow with the rows."""

from __future__ import annotations

import csv
import os
import subprocess
import threading
from pathlib import Path

import pytest

from ..conftest import TITIN
from ..ensembles.conftest import HERE
from ..ensembles.test_sampler import MODEL
from .conftest import amount

pytestmark = pytest.mark.timeout(3600)


def resident(pid: int) -> int:
    """The memory of a process, in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def sampler() -> int | None:
    """The process of the component titin.sampler of the run under this process."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if b"sampler" in words and b"SOAK_STUDY=" + str(os.getpid()).encode() in environment:
            return int(process.name)
    return None


def test_light_rows_over_few_members(tmp_path: Path) -> None:
    rows = int(amount("ROWS", 10_000))
    lines = "".join(f"{number}.5,{number}\n" for number in range(rows))
    (tmp_path / "table.csv").write_text("k,n\n" + lines)
    text = MODEL.format(members=4, here=HERE, port="row", to="row", settings="sampler.table: table.csv", ensemble="")
    (tmp_path / "model.ymmsl").write_text(text)
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    run = subprocess.Popen(command, cwd=tmp_path, env=os.environ | {"SOAK_STUDY": str(os.getpid())})
    sizes: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            pid = sampler()
            try:
                sizes.extend([resident(pid)] if pid else [])
            except (OSError, StopIteration):
                continue

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert run.wait() == 0
    ended.set()
    watcher.join()
    with (tmp_path / "results.csv").open() as file:
        numbers = [int(row["row"]) for row in csv.DictReader(file) if row["status"] == "done"]
    assert sorted(numbers) == list(range(rows))
    quarter = len(sizes) // 4
    assert quarter >= 2, sizes
    assert max(sizes[-quarter:]) < max(sizes[: quarter * 2]) + 2048, sizes
