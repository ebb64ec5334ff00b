"""Failures around the programs: the command itself, strangers, the disk, launchers, the order of starts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import pytest

from ..conftest import Manager, needs
from .conftest import MODEL, PROGRAMS, Run

Start = Callable[..., Run]

#: A culprit that goes on for long, so that the test can act on the run.
LONG = f"executable: {sys.executable}\n    args: [{PROGRAMS}/long.py]"


def gone(run: Run) -> bool:
    """Whether nothing of the run is left, once the guard has had its time."""
    while left := run.leftovers():
        time.sleep(0.05)
        if not any("titin" in line or "long" in line or "peer" in line for line in left):
            return False
    return True


def guard_of(run: Run) -> int:
    """The process id of the run's guard."""
    children = Path(f"/proc/{run.process.pid}/task/{run.process.pid}/children").read_text().split()
    for child in children:
        if b"guard" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("no guard")


def test_ctrl_c_ends_the_run(start: Start) -> None:
    run = start(LONG)
    run.await_file("connection.json")
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.output
    assert run.leftovers() == []
    assert not (run.folder / "run" / "connection.json").exists()


def test_kill_of_the_command_leaves_nothing(start: Start) -> None:
    run = start(LONG)
    run.await_file("connection.json")
    run.process.kill()
    run.process.wait()
    assert gone(run)


def test_kill_of_the_guard_ends_the_run(start: Start) -> None:
    run = start(LONG)
    run.await_file("connection.json")
    os.kill(guard_of(run), signal.SIGKILL)
    assert run.wait() == 1, run.output
    assert "guard" in run.output
    assert gone(run)


def listeners(run: Run) -> list[int]:
    """All ports that processes of the run listen on."""
    inodes = {}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A":
            inodes[fields[9]] = int(fields[1].split(":")[1], 16)
    ports = set()
    mark = f"{run.folder}/".encode()
    for entry in Path("/proc").iterdir():
        try:
            ours = entry.name == str(run.process.pid) or mark in (entry / "environ").read_bytes()
            descriptors = list((entry / "fd").iterdir()) if ours else []
            for descriptor in descriptors:
                target = os.readlink(descriptor)
                if target.startswith("socket:["):
                    ports.add(inodes.get(target[8:-1], 0))
        except OSError:
            continue
    return sorted(ports - {0})


def test_strangers_and_garbage_do_not_disturb(start: Start) -> None:
    run = start(f"executable: {sys.executable}\n    args: [{PROGRAMS}/long.py, until, stop]")
    run.await_file("connection.json")
    # One port of the manager, and one of each program.
    while len(ports := listeners(run)) < 3:
        assert run.process.poll() is None, run.wait()
        time.sleep(0.01)
    garbage = [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 1000, b"TITIN\r\n\0" + b"\xff" * 500, os.urandom(4096), b""]
    held = []
    for port in ports:
        for text in garbage:
            stranger = socket.create_connection(("127.0.0.1", port))
            stranger.sendall(text)
            held.append(stranger)
    for stranger in held:
        stranger.close()
    (run.folder / "run" / "instances" / "culprit" / "workdir" / "stop").touch()
    assert run.wait() == 0, run.output


def test_a_full_disk_is_told(start: Start, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=False).returncode:
        pytest.skip("this machine does not let us mount a small file system")
    try:
        talker = f"executable: {sys.executable}\n    args: [-c, 'while True: print(\"x\" * 4096)']"
        run = start(talker, directory=disk / "run")
        assert run.wait() == 1, run.output
        assert "space" in run.output or "disk" in run.output, run.output
        assert "panicked" not in run.output
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.parametrize("how", ["script", "setsid", "mpirun"])
def test_programs_behind_launchers_are_ended(start: Start, how: str) -> None:
    program = f"{sys.executable} {PROGRAMS}/culprit.py kill"
    if how == "mpirun":
        needs("mpirun")
    line = {
        "script": program,
        "setsid": f"setsid --wait {program}",
        "mpirun": f"mpirun -n 1 {program}",
    }[how]
    run = start(f"script: |\n      #!/bin/bash\n      {line}\n      exit $?")
    assert run.wait() == 1, run.output
    assert "culprit" in run.output
    assert run.error().startswith("PeerLost")
    assert gone(run)


class Pair(Manager):
    """The manager of a culprit and a peer that are started by hand."""

    def __init__(self, folder: Path) -> None:
        culprit = f"executable: {sys.executable}"
        super().__init__(folder, MODEL.format(culprit=culprit, python=sys.executable, programs=PROGRAMS, folder=folder))

    def begin(self, instance: str, **environment: str) -> subprocess.Popen[str]:
        """Starts one of the two programs."""
        argument = {"culprit": "none", "peer": self.folder}[instance]
        with (self.folder / f"{instance}.stderr").open("w") as stderr:
            program = (sys.executable, PROGRAMS / f"{instance}.py", argument)
            return self.start(*program, stderr=stderr, **{"TITIN_INSTANCE": instance} | environment)


@pytest.mark.parametrize("order", list(permutations(["culprit", "peer"])))
def test_programs_started_by_hand_in_any_order(tmp_path: Path, order: tuple[str, str]) -> None:
    manager = Pair(tmp_path)
    first = manager.begin(order[0])
    # The first program has to wait, alone, before the second is started.
    while not Path(f"/proc/{first.pid}/task").exists() or len(os.listdir(f"/proc/{first.pid}/task")) < 2:
        assert first.poll() is None
        time.sleep(0.01)
    second = manager.begin(order[1], MUSCLE_INSTANCE="ignored")
    assert first.wait() == 0
    assert second.wait() == 0
    code, output = manager.wait()
    assert code == 0, output


def test_the_names_of_muscle_are_honoured(tmp_path: Path) -> None:
    manager = Pair(tmp_path)
    both = [
        manager.begin(
            name, TITIN_MANAGER="", TITIN_INSTANCE="", MUSCLE_MANAGER=str(manager.connection), MUSCLE_INSTANCE=name
        )
        for name in ["culprit", "peer"]
    ]
    assert [process.wait() for process in both] == [0, 0]
    code, output = manager.wait()
    assert code == 0, output


def test_a_wrong_secret_is_refused(tmp_path: Path) -> None:
    manager = Pair(tmp_path)
    connection = json.loads(manager.connection.read_text())
    address = connection["addresses"][0]
    stranger = manager.begin("culprit", TITIN_MANAGER=address, TITIN_SECRET="00" * 32)
    assert stranger.wait() != 0
    text = (tmp_path / "culprit.stderr").read_text()
    assert "secret" in text, text
    # The run goes on for processes that know the secret, without a shared file system, too.
    friends = [
        manager.begin(name, TITIN_MANAGER=address, TITIN_SECRET=connection["secret"]) for name in ["culprit"]
    ] + [manager.begin("peer")]
    assert [friend.wait() for friend in friends] == [0, 0]
    code, output = manager.wait()
    assert code == 0, output
