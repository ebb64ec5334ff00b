"""What the tests share: where the command is, what it prints for builds, and managers for programs started by hand."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = Path(sys.executable).parent
TITIN = TOOLS / "titin"

# As in an activated virtual environment: `titin` and `python3` are those beside the running Python.
os.environ["PATH"] = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"

# Whoever is started in the background by a script is deaf to Ctrl-C, and so would be the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def config(*wanted: str) -> list[str]:
    """What ``titin config`` prints."""
    done = subprocess.run([TITIN, "config", *wanted], capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


class Manager:
    """``titin manager`` in a folder, for programs that are started by hand."""

    def __init__(self, folder: Path, model: str) -> None:
        (folder / "model.ymmsl").write_text(model)
        self.folder = folder
        self.directory = folder / "run"
        self.connection = self.directory / "connection.json"
        self.process = subprocess.Popen(
            [TITIN, "manager", "model.ymmsl", "--run-dir", self.directory],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while not self.connection.exists():
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.01)

    def start(self, *command: object, stderr: Any = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
        """Starts a program that finds the run by its environment."""
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=self.folder,
            env=os.environ | {"TITIN_MANAGER": str(self.connection)} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stderr == subprocess.PIPE else None,
            stderr=stderr,
            text=True,
        )

    def run(self, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end."""
        with self.start(*command, **environment) as process:
            output, errors = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def wait(self) -> tuple[int, str]:
        """Its exit code, once it has ended, and what it has printed."""
        output = self.process.communicate()[0]
        return self.process.returncode, output


Manage = Callable[..., Manager]


@pytest.fixture
def manage(tmp_path: Path) -> Iterator[Manage]:
    """Starts the manager of a model, in a folder of its own if one is named."""
    managers: list[Manager] = []

    def start(model: str, name: str = "") -> Manager:
        (tmp_path / name).mkdir(exist_ok=True)
        managers.append(Manager(tmp_path / name, model))
        return managers[-1]

    yield start
    for manager in managers:
        if manager.process.poll() is None:
            manager.process.kill()
            manager.process.communicate()
