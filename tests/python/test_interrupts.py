"""Ctrl-C: wherever a program waits, it ends with KeyboardInterrupt, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from titin.model import Model

#: A partner that waits for a message that does not come. It waits with a deadline, since two endless waits would be a
#: deadlock.
PATIENT = """
import contextlib
import pathlib
import titin

with titin.Instance() as instance:
    while instance.reuse():
        pathlib.Path("patient").write_text("")
        while True:
            with contextlib.suppress(titin.Timeout):
                instance.receive("{port}", timeout=0.1)
"""

RECEIVES = """
import pathlib
import titin

with titin.Instance() as instance:
    while instance.reuse():
        pathlib.Path("waiting").write_text("")
        instance.receive("in")
"""

SENDS = """
import pathlib
import titin

with titin.Instance() as instance:
    while instance.reuse():
        for time in range(2):
            # There is room for one message, and nobody takes it.
            instance.send("out", timestamp=time)
            pathlib.Path("waiting").write_text("")
"""


def asleep(process: int) -> bool:
    """Whether the main thread of a process waits."""
    state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    wait = Path(f"/proc/{process}/wchan").read_text()
    return state == "S" and (wait in ("", "0") or "futex" in wait)


def await_file(path: Path, process: subprocess.Popen[str]) -> None:
    """Waits until a program has written this file."""
    while not path.exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)


def programs_of(run: Path) -> dict[str, int]:
    """The processes of a run that are Python programs, by instance."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                command = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            here = f"TITIN_MANAGER={run}/connection.json".encode() in variables
            if here and command[0] == sys.executable.encode():
                name = next(variable for variable in variables if variable.startswith(b"TITIN_INSTANCE="))
                found[name.partition(b"=")[2].decode()] = int(entry.name)
    return found


def talkers() -> Model:
    """A pair with room for one message, in which each side may wait for the other."""
    model = Model("pair")
    model.component("sender", "sender", o_i="out spare", s="back")
    model.component("receiver", "receiver", s="in other", o_i="reply")
    model.conduit("sender.out", "receiver.in")
    model.conduit("sender.spare", "receiver.other")
    model.conduit("receiver.reply", "sender.back")
    model.titin = {"buffer": {"default": {"messages": 1}}}
    return model


#: The receiver declares its end only after the sender was interrupted, because the sender waits for the declaration.
SENDS_FIELD = """
import pathlib
import threading
import numpy as np
import signal
import titin

with titin.Instance(o_i=["out"]) as instance:
    instance.reuse()
    field = instance.field("out", shape=(3,), dtype="f8")
    threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
    try:
        field.send(np.arange(3.0), timestamp=0.0)
    except KeyboardInterrupt:
        pathlib.Path("interrupted").write_text("")
    try:
        field.send(np.zeros(3), timestamp=1.0)
    except titin.UsageError as error:
        pathlib.Path("refused").write_text(str(error))
    field.send(np.arange(3.0), timestamp=0.0)
    field.send(np.ones(3), timestamp=1.0)
"""

RECEIVES_FIELD = """
import pathlib
import time
import numpy as np
import titin

with titin.Instance(s=["in"]) as instance:
    instance.reuse()
    while not pathlib.Path("../../sender/workdir/refused").exists():
        time.sleep(0.01)
    field, array = instance.field("in", shape=(3,), dtype="f8"), np.empty(3)
    for expected in [[0, 1, 2], [1, 1, 1]]:
        field.receive(array)
        assert array.tolist() == expected, array
"""


def test_a_field_that_was_interrupted_is_sent_again_before_another(stage):
    model = Model("pair")
    model.component("sender", "sender", o_i="out")
    model.component("receiver", "receiver", s="in")
    model.conduit("sender.out", "receiver.in")
    process = stage.launch(model, sender=SENDS_FIELD, receiver=RECEIVES_FIELD)
    output = process.communicate()[0]
    assert process.returncode == 0, output
    workdir = stage.folder / "run/instances/sender/workdir"
    assert (workdir / "interrupted").exists()
    assert "a call at another time was interrupted" in (workdir / "refused").read_text()


@pytest.mark.parametrize("where", ["receive", "send"])
def test_a_program_of_a_run(stage, where):
    """Sends a signal to one program: the program raises KeyboardInterrupt, and its failure ends the run."""
    role, text = ("sender", SENDS) if where == "send" else ("receiver", RECEIVES)
    other, port = ("receiver", "other") if where == "send" else ("sender", "back")
    process = stage.launch(talkers(), **{role: text, other: PATIENT.format(port=port)})
    await_file(stage.folder / f"run/instances/{role}/workdir/waiting", process)
    target = programs_of(stage.folder / "run")[role]
    while not asleep(target):
        time.sleep(0.01)
    os.kill(target, signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 1, output
    assert f"{role} reported an error: KeyboardInterrupt" in output
    assert f"instance.{where}(" in output
    assert programs_of(stage.folder / "run") == {}


def test_a_run_at_a_terminal(stage):
    """Sends a signal to the command and to all processes of its terminal."""
    process = stage.launch(talkers(), sender=PATIENT.format(port="back"), receiver=RECEIVES)
    await_file(stage.folder / "run/instances/receiver/workdir/waiting", process)
    os.killpg(process.pid, signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 130, output
    assert "the user ended the run (SIGINT)" in output
    assert "PeerLost" in stage.output()
    assert programs_of(stage.folder / "run") == {}
    assert not (stage.folder / "run/connection.json").exists()


def test_a_program_started_by_hand(stage, manage):
    model = talkers()
    manager = manage(model.text())

    def start(name: str, text: str) -> subprocess.Popen[str]:
        return manager.start(sys.executable, stage.program(name, text), TITIN_INSTANCE=name)

    receiver, sender = start("receiver", RECEIVES), start("sender", PATIENT.format(port="back"))
    await_file(stage.folder / "waiting", manager.process)
    await_file(stage.folder / "patient", manager.process)
    while not asleep(receiver.pid):
        time.sleep(0.01)
    receiver.send_signal(signal.SIGINT)
    said = receiver.communicate()[1]
    assert receiver.returncode == -signal.SIGINT, said
    assert said.rstrip().endswith("KeyboardInterrupt")
    said = sender.communicate()[1]
    assert sender.returncode == 1
    assert "PeerLost" in said and "receiver" in said and "KeyboardInterrupt" in said
    code, output = manager.wait()
    assert code == 1
    assert "receiver reported an error: KeyboardInterrupt" in output


HOST = """
import contextlib, pathlib, sys, threading
import titin

class Model:
    def text(self):
        return pathlib.Path("model.ymmsl").read_text()

def patient(instance):
    while instance.reuse():
        while True:
            with contextlib.suppress(titin.Timeout):
                instance.receive("back", timeout=0.1)

def waits(instance):
    while instance.reuse():
        pathlib.Path("waiting").write_text("")
        instance.receive("in")

def computes(instance):
    while instance.reuse():
        pathlib.Path("waiting").write_text("")
        while True:
            sum(range(1000))

functions = {"waits": {"sender": patient, "receiver": waits}, "computes": {"sender": patient, "receiver": computes}}
try:
    titin.run(Model(), functions.get(sys.argv[1]), run_dir="run")
except KeyboardInterrupt:
    print("interrupted; threads:", threading.active_count(), flush=True)
"""


@pytest.mark.parametrize("to", ["one", "all"])
@pytest.mark.parametrize("how", ["waits", "computes", "programs"])
def test_a_run_from_python(stage, how, to):
    """The main thread waits in titin.run. At a terminal, the command that titin.run has started gets the signal,
    too."""
    model = talkers()
    for name, text in {"sender": PATIENT.format(port="back"), "receiver": RECEIVES}.items():
        model.program(name, sys.executable, [str(stage.program(name, text))])
    model.write(stage.folder / "model.ymmsl")
    (stage.folder / "temporary").mkdir()
    process = subprocess.Popen(
        [sys.executable, stage.program("host", HOST), how],
        cwd=stage.folder,
        env=os.environ | {"TMPDIR": str(stage.folder / "temporary")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    place = "run/instances/receiver/workdir" if how == "programs" else ""
    await_file(stage.folder / place / "waiting", process)
    (os.killpg if to == "all" else os.kill)(process.pid, signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 0, output
    assert "interrupted; threads: 1\n" in output
    assert "the user ended the run (SIGINT)" in output
    assert "Traceback" not in output
    assert programs_of(stage.folder / "run") == {}
    assert members(process.pid) == []
    assert not (stage.folder / "run/connection.json").exists()
    assert list((stage.folder / "temporary").iterdir()) == []


def members(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


JOINS = """
import os, pathlib
import titin

pathlib.Path("waiting").write_text("")
try:
    titin.Instance()
except KeyboardInterrupt:
    files = [os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd")]
    sockets = [file for file in files if "socket" in file]
    print("interrupted;", len(os.listdir("/proc/self/task")), "thread; sockets:", sockets)
"""


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a manager that gives no answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"tcp:127.0.0.1:{listener.getsockname()[1]}"


def test_a_program_that_has_not_joined(stage, silent):
    """The manager accepts the connection but does not answer."""
    variables = {"TITIN_MANAGER": silent, "TITIN_INSTANCE": "sender", "TITIN_SECRET": "00" * 32}
    process = subprocess.Popen(
        [sys.executable, stage.program("joins", JOINS)],
        cwd=stage.folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    await_file(stage.folder / "waiting", process)
    while not asleep(process.pid):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output = process.communicate()[0]
    assert process.returncode == 0, output
    assert output == "interrupted; 1 thread; sockets: []\n"
