"""What the tests share: a run that is over, runs that go on until a test has seen enough, servers of their pages."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import titin
from titin.model import Model

from ..conftest import TITIN, WATCHDOG

#: A driver whose members wait for it, until a file tells it to go on. Each member is one of many coroutines.
ENSEMBLE = """
import asyncio, pathlib, sys
import numpy as np
import titin
from titin.model import Model

count, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
model = Model("ensemble", "A driver and its members")
model.component("driver", o_i="out", s="back")
model.component("member", f_init="in", o_f="final", multiplicity=count)
model.conduit("driver.out", "member.in")
model.conduit("member.final", "driver.back")


async def driver(instance):
    while await instance.reuse():
        for step in range(2):
            for slot in range(count):
                await instance.send("out", np.array([slot], float), slot=slot, timestamp=float(step))
            for slot in range(count):
                await instance.receive("back", slot=slot)
            while step == 0 and not (folder / "enough").exists():
                await asyncio.sleep(0.02)


async def member(instance):
    while await instance.reuse():
        message = await instance.receive("in")
        await instance.send("final", message.data, timestamp=message.timestamp)


titin.run(model, {"driver": driver, "member": member}, run_dir=folder / "run", quiet=True)
"""


class LiveRun:
    """A run that goes on until :meth:`finish`."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.directory = folder, folder / "run"
        (folder / "ensemble.py").write_text(ENSEMBLE)
        command = [sys.executable, folder / "ensemble.py", str(count), folder]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        while not (self.directory / "connection.json").exists():
            assert self.process.poll() is None
            time.sleep(0.02)

    def finish(self) -> None:
        (self.folder / "enough").touch()
        assert self.process.wait(WATCHDOG) == 0


class View:
    """``titin view``, and a client that does what a browser does."""

    def __init__(self, directory: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [TITIN, "view", directory],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.link = self.process.stdout.readline().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/\?token=[0-9a-f]{32})", self.link)
        assert found, self.link or self.process.communicate()[1]
        self.port, self.entry = int(found[1]), found[2]
        self.cookie = self.page = ""

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
        """The status, the headers and the text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WATCHDOG)
        try:
            connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            answer = connection.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
        finally:
            connection.close()

    def enter(self) -> None:
        """Opens the link."""
        status, headers, _ = self.ask(self.entry)
        assert status == 303
        self.cookie, self.page = headers["set-cookie"].partition(";")[0], headers["location"]

    def get(self, name: str = "") -> str:
        """What the page gets."""
        status, _, text = self.ask(self.page + name, Cookie=self.cookie)
        assert status == 200, text
        return text

    def json(self, name: str) -> Any:
        return json.loads(self.get(name))

    def until(self, is_meant: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first state of the run that is meant."""
        while True:
            state: dict[str, Any] = self.json("state")
            if is_meant(state):
                return state
            time.sleep(0.1)

    def end(self) -> str:
        """What the command has said on standard error."""
        self.process.send_signal(signal.SIGINT)
        errors = self.process.communicate(timeout=WATCHDOG)[1]
        assert self.process.returncode == 0, errors
        return errors


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Callable[[int], LiveRun]]:
    """Begins a run of a driver and some members."""
    begun: list[LiveRun] = []

    def begin(count: int) -> LiveRun:
        begun.append(LiveRun(tmp_path, count))
        return begun[-1]

    yield begin
    for run in begun:
        (run.folder / "enough").touch()
        run.process.wait(WATCHDOG)


@pytest.fixture
def view() -> Iterator[Callable[..., View]]:
    """Serves the page of a run."""
    started: list[View] = []

    def serve(directory: Path, **environment: str) -> View:
        started.append(View(directory, **environment))
        return started[-1]

    yield serve
    for one in started:
        if one.process.poll() is None:
            one.end()


def pair(folder: Path, description: str = "") -> Path:
    """The directory of a run that is over: one instance has sent an array of two to the other."""
    model = Model("pair", description)
    model.component("sender", o_f="out")
    model.component("receiver", f_init="in")
    model.conduit("sender.out", "receiver.in")

    def sender(instance):
        while instance.reuse():
            instance.send("out", np.array([1.0, 2.0]), timestamp=3.5)

    def receiver(instance):
        while instance.reuse():
            instance.receive("in")

    functions = {"sender": sender, "receiver": receiver}
    return titin.run(model, functions, run_dir=folder / "run", quiet=True).directory


def save(directory: Path, file: Path) -> str:
    """The page as a file."""
    subprocess.run([TITIN, "view", directory, "--save", file], check=True, timeout=WATCHDOG)
    return file.read_text()
