"""Nothing that processes of one host share is left behind, whoever is killed while messages are on their way."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..conftest import TITIN

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


@pytest.mark.parametrize("victim", ["sender", "receiver", "manager", "guard"])
def test_nothing_is_left_when_somebody_is_killed(tmp_path: Path, victim: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    (tmp_path / "pair.ymmsl").write_text(MODEL.format(python=sys.executable, program=program))
    run = tmp_path / "run"
    manager = subprocess.Popen(
        [TITIN, "run", "pair.ymmsl", "--run-dir", run], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    while len(list(run.glob("instances/*/workdir/*.going"))) < 2:
        assert manager.poll() is None, manager.communicate()
        time.sleep(0.01)
    secret = json.loads((run / "connection.json").read_text())["secret"]
    digest = hashlib.sha256(b"titin meeting place" + bytes.fromhex(secret)).hexdigest()
    place = Path(f"/dev/shm/titin-{digest[:16]}")
    assert len(list(place.iterdir())) == 2
    (guard,) = children(manager.pid)
    programs = {Path(f"/proc/{pid}/cmdline").read_text().split("\0")[-2]: pid for pid in children(guard)}
    os.kill({"manager": manager.pid, "guard": guard, **programs}[victim], signal.SIGKILL)
    manager.communicate()
    # Who is left ends by itself, with nobody to wait for it.
    while place.exists() or any(Path(f"/proc/{pid}").exists() for pid in programs.values()):
        time.sleep(0.01)


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
    # It is told on lines of the page's width.
    told = " ".join(done.stderr.split())
    assert "the memory of a message cannot be taken over from the program that shares it" in told, told
    assert "too many open files" in told and "`ulimit -n`" in told, told
