"""Pairs of Python functions that run as instances of this process, and runs of real programs."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
import titin
from titin.model import Model

from ..conftest import TITIN

Role = Callable[[titin.Instance], Any]


def pair(*filters: str, multiplicity: int | tuple[int, ...] = ()) -> Model:
    """A sender with ports out and spare (O_I), a receiver with ports in and other (S); out goes to in."""
    model = Model("pair")
    model.component("sender", "sender", o_i="out spare")
    model.component("receiver", "receiver", s="in other", multiplicity=multiplicity)
    model.conduit("sender.out", "receiver.in", *filters)
    return model


class Stage:
    """A folder and what runs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def play(self, sender: Role, receiver: Role, model: Model | None = None) -> dict[str, Any]:
        """Runs a sender and a receiver to the end; returns the values that they returned."""
        functions = {"sender": sender, "receiver": receiver}
        return titin.run(model or pair(), functions, run_dir=self.folder / "run").returned

    def fails(self, sender: Role, receiver: Role, model: Model | None = None) -> tuple[BaseException, str]:
        """Runs a sender and a receiver, one of which fails; returns the exception, and the log of the run."""
        with pytest.raises(BaseException) as raised:  # noqa: PT011
            self.play(sender, receiver, model)
        return raised.value, (self.folder / "run/titin_manager.log").read_text()

    def program(self, name: str, text: str) -> Path:
        """Writes a Python program; returns its path."""
        path = self.folder / f"{name}.py"
        path.write_text(text)
        return path

    def launch(self, model: Model, *extras: str, **programs: str) -> subprocess.Popen[str]:
        """Starts `titin run` as a shell does, with a Python program for each component named; all output goes to one
        pipe.

        ``extras`` is put under `titin:` in the description.
        """
        for name, text in programs.items():
            model.program(name, sys.executable, [str(self.program(name, text))])
        path = self.folder / "model.ymmsl"
        model.write(path)
        if extras:
            path.write_text("\n".join([path.read_text(), "titin:", *(f"  {line}" for line in extras), ""]))
        command = [str(TITIN), "run", "model.ymmsl", "--run-dir", "run"]
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, start_new_session=True, **streams)

    def run(self, model: Model, **programs: str) -> str:
        """Runs `titin run` with a Python program for each component named, which must end well; returns the output."""
        process = self.launch(model, **programs)
        output = process.communicate()[0]
        assert process.returncode == 0, output + self.output()
        return output

    def output(self) -> str:
        """The output of all programs."""
        files = sorted((self.folder / "run/instances").glob("*/std*.txt"))
        return "".join(f"{file.relative_to(self.folder)}:\n{file.read_text()}" for file in files)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


class Echo:
    """Sends data from one instance to another, in a run that goes on from test to test."""

    def __init__(self, folder: Path) -> None:
        self._orders: Queue[Any] = Queue()
        self._sent: Queue[BaseException | None] = Queue()
        self._asked: Queue[bool] = Queue()
        self._received: Queue[titin.Message] = Queue()
        self._end: list[BaseException] = []
        self._going = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(folder,))
        self._thread.start()
        # The command has to start within this test: it inherits the standard output, which pytest captures within a
        # test but not between two tests.
        self._going.wait()

    def __call__(self, data: Any, settings: dict[str, Any] | None = None) -> titin.Message:
        """Sends data, and returns the received message. Raises the exception of the send."""
        self._orders.put((data, settings))
        raised = self._sent.get()
        if raised is not None:
            raise raised
        self._asked.put(True)
        return self._received.get()

    def close(self) -> None:
        self._orders.put(None)
        self._asked.put(False)
        self._thread.join()
        assert self._end == []

    def _run(self, folder: Path) -> None:
        try:
            titin.run(pair(), {"sender": self._send, "receiver": self._receive}, run_dir=folder / "run")
        except BaseException as raised:
            self._end.append(raised)
        finally:
            self._going.set()

    def _send(self, instance: titin.Instance) -> None:
        self._going.set()
        instance.reuse()
        times = count()
        while (order := self._orders.get()) is not None:
            data, settings = order
            try:
                instance.send("out", data, timestamp=next(times), settings=settings)
                self._sent.put(None)
            except BaseException as raised:
                self._sent.put(raised)
        instance.reuse()

    def _receive(self, instance: titin.Instance) -> None:
        instance.reuse()
        while self._asked.get():
            self._received.put(instance.receive("in"))
        instance.reuse()


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Echo]:
    echo = Echo(tmp_path_factory.mktemp("echo"))
    yield echo
    echo.close()
