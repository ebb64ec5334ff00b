"""Processes of one host leave nothing of their shared memory behind, whichever process is killed during messages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import meeting_place

PROGRAM = """
import sys
import numpy as np
import titin

role = sys.argv[1]
data = np.zeros(100_000)
with titin.Instance(**{"sender": {"o_i": ["out"]}, "receiver": {"s": ["in"]}}[role]) as instance:
    while instance.reuse():
        for time in range(10**9):
            if role == "sender":
                instance.send("out", data, timestamp=time)
            else:
                instance.receive("in")
            if time == 100:
                open(f"{role}.going", "w").close()
"""

MODEL = """\
ymmsl_version: v0.2
models:
  pair:
    components:
      sender: {{ports: {{o_i: out}}, implementation: sender}}
      receiver: {{ports: {{s: in}}, implementation: receiver}}
    conduits:
      sender.out: receiver.in
programs:
  sender: {{executable: {python}, args: [{program}, sender]}}
  receiver: {{executable: {python}, args: [{program}, receiver]}}
"""


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Run:
    """Two instances that share memory and are in the middle of messages."""

    def __init__(self, folder: Path) -> None:
        program = folder / "program.py"
        program.write_text(PROGRAM)
        (folder / "pair.ymmsl").write_text(MODEL.format(python=sys.executable, program=program))
        run = folder / "run"
        command = [TITIN, "run", "pair.ymmsl", "--run-dir", run]
        log = folder / "titin.log"
        with log.open("w") as output:
            self.manager = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        while len(list(run.glob("instances/*/workdir/*.going"))) < 2:
            assert self.manager.poll() is None, log.read_text()
            time.sleep(0.01)
        secret = json.loads((run / "connection.json").read_text())["secret"]
        self.place = meeting_place(secret)
        assert len([path for path in self.place.iterdir() if path.is_socket()]) == 2
        (self.guard,) = children(self.manager.pid)
        pids = children(self.guard)
        self.programs = {Path(f"/proc/{pid}/cmdline").read_text().split("\0")[-2]: pid for pid in pids}

    def wait(self) -> None:
        """Waits until no program is left."""
        self.manager.wait()
        while any(Path(f"/proc/{pid}").exists() for pid in self.programs.values()):
            time.sleep(0.01)


Start = Callable[[str], Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts runs in folders of their own, and ends them with the test."""
    runs: list[Run] = []

    def started(name: str) -> Run:
        (tmp_path / name).mkdir()
        runs.append(Run(tmp_path / name))
        return runs[-1]

    yield started
    for run in runs:
        run.manager.terminate()
        run.wait()


@pytest.mark.parametrize("victim", ["sender", "receiver", "manager", "guard"])
def test_nothing_is_left_when_somebody_is_killed(start: Start, victim: str) -> None:
    run = start("run")
    os.kill({"manager": run.manager.pid, "guard": run.guard, **run.programs}[victim], signal.SIGKILL)
    # The remaining processes end by themselves; no parent waits for them.
    run.wait()
    while run.place.exists():
        time.sleep(0.01)


def test_what_manager_and_guard_leave_goes_with_the_next_run(start: Start) -> None:
    killed, going = start("killed"), start("going")
    # Both are stopped first, so neither sees the other's end.
    for number in [signal.SIGSTOP, signal.SIGKILL]:
        for pid in [killed.manager.pid, killed.guard]:
            os.kill(pid, number)
    killed.wait()
    # The folder is there still, unless the run of another test has begun meanwhile.
    start("next")
    assert not killed.place.exists()
    assert going.place.exists(), "a living run keeps its own"


FULL = """
import os
import resource
import sys
import numpy as np
import titin

role = sys.argv[1]
ports = {"sender": {"o_i": ["out"], "s": ["back"]}, "receiver": {"f_init": ["in"], "o_f": ["full"]}}
with titin.Instance(**ports[role]) as instance:
    while instance.reuse():
        if role == "sender":
            instance.send("out", None, timestamp=0)
            instance.receive("back")
            # Too large for the ring, so it goes by memory that is handed over.
            instance.send("out", np.zeros(100_000), timestamp=1)
            instance.receive("back")
        else:
            instance.receive("in")
            free = os.dup(0)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            instance.send("full", None, timestamp=0)
"""


def test_a_receiver_with_too_many_open_files_is_told_so(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FULL)
    text = MODEL.format(python=sys.executable, program=program)
    text = text.replace("{o_i: out}", "{o_i: out, s: back}").replace("{s: in}", "{f_init: in, o_f: full}")
    text = text.replace("sender.out: receiver.in", "sender.out: receiver.in\n      receiver.full: sender.back")
    (tmp_path / "pair.ymmsl").write_text(text)
    done = subprocess.run(
        [TITIN, "run", "pair.ymmsl", "--run-dir", "run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    # The report breaks lines at the width of a page.
    told = " ".join(done.stderr.split())
    assert "the memory of a message cannot be taken over from the program that shares it" in told, told
    assert "too many open files" in told and "`ulimit -n`" in told, told
