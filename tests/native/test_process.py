"""Signals and forks in a process that takes part in a run."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Build, processes, run, sleeps

MODEL = """\
ymmsl_version: v0.2
models:
  pair:
    components:
      caller: {{ports: {{o_i: out, s: in}}, implementation: caller}}
      echo: {{ports: {{s: in, o_i: out}}, implementation: echo}}
    conduits:
      caller.out: echo.in
      echo.out: caller.in
    matching_timelines: {{caller: echo}}
programs:
  caller: {{executable: {program}, args: [{role}], env: {{{env}}}}}
  echo: {{executable: {program}, args: [echo], env: {{{env}}}}}
# Until the signal comes, the two wait for each other.
settings: {{muscle_deadlock_receive_timeout: -1}}
"""


def interrupt(folder: Path, program: Path, env: str = "") -> None:
    """Runs the pair, and sends the caller a signal while the caller waits for a message that does not come."""
    (folder / "model.ymmsl").write_text(MODEL.format(program=program, role="caller", env=env))
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        waiting = folder / "run/instances/caller/workdir/waiting"
        while running.poll() is None and not waiting.exists():
            time.sleep(0.01)
        callers = processes(program, "caller")
        while running.poll() is None and not any(map(sleeps, callers)):
            time.sleep(0.01)
        for caller in callers:
            os.kill(caller, signal.SIGUSR1)
        output = running.communicate()[0]
    said = "".join(file.read_text() for file in folder.glob("run/instances/*/stderr.txt"))
    assert running.returncode == 0, output + said


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_a_signal_interrupts_a_receive(build: Build, tmp_path: Path, language: str) -> None:
    interrupt(tmp_path, build("interrupted", language))


def interrupt_opening(folder: Path, program: Path, **environment: str) -> None:
    """Starts a program whose manager accepts but does not answer, and sends the program a signal."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        manager = f"tcp:127.0.0.1:{silent.getsockname()[1]}"
        environment |= {"TITIN_MANAGER": manager, "TITIN_INSTANCE": "newcomer", "TITIN_SECRET": "00" * 32}
        with subprocess.Popen([program, "newcomer"], cwd=folder, env=os.environ | environment) as newcomer:
            while newcomer.poll() is None and not ((folder / "waiting").exists() and sleeps(newcomer.pid)):
                time.sleep(0.01)
            newcomer.send_signal(signal.SIGUSR1)
    assert newcomer.returncode == 0


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_a_signal_interrupts_an_opening(build: Build, tmp_path: Path, language: str) -> None:
    interrupt_opening(tmp_path, build("interrupted", language))


def test_closing_while_another_thread_is_in_a_call_fails_the_run(build: Build, tmp_path: Path) -> None:
    (tmp_path / "model.ymmsl").write_text(MODEL.format(program=build("closes", "c"), role="caller", env=""))
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    said = "".join(file.read_text() for file in tmp_path.glob("run/instances/*/stderr.txt"))
    assert done.returncode == 1, done.stdout + said
    first = " ".join(done.stdout[done.stdout.index("First:") :].split())
    assert "caller: close() while another thread is in a call on the instance" in first, done.stdout + said
    assert ".c:" not in said, said


def test_a_fork_leaves_the_parent_its_connections(build: Build, tmp_path: Path) -> None:
    run(tmp_path, MODEL.format(program=build("forks", "c"), role="parent", env=""))
