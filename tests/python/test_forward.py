"""`titin forward`: paths that hosts in the middle of the line pass on."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ..conftest import TITIN

#: Sends arrays of all sizes and gets each of them back, or is the other end, which prints its address and listens.
PROGRAM = """\
import sys, time
import numpy as np
from titin.path import Path, PathListener

if len(sys.argv) == 1:
    with PathListener("127.0.0.1:0") as listener:
        print(listener.address, flush=True)
        path = listener.accept()
    while True:
        path.send(path.receive())
path = Path(sys.argv[1], "there and back", streams=int(sys.argv[2]), outage=20)
random = np.random.default_rng(2)
for number in range(int(sys.argv[3])):
    array = random.random(int(10 ** random.uniform(0, 6.3)))
    path.send(array)
    assert np.array_equal(path.receive(), array), number
    print(number, flush=True)
    while number == 1 and "stay" in sys.argv:
        time.sleep(0.01)
path.close()
print("all the same", flush=True)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    key = tmp_path / "key"
    subprocess.run([TITIN, "path", "key", key], check=True, capture_output=True)
    monkeypatch.setenv("TITIN_PATH_KEY", str(key))
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@contextlib.contextmanager
def started(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed in the end, with what it prints and its errors in one pipe."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


@contextlib.contextmanager
def forward(to: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A host in the middle, and its address."""
    with started(TITIN, "forward", f"127.0.0.1:{port}", to) as process:
        said = line(process)
        found = re.search(r"address=(\S+)", said)
        assert found and f'to="{to}"' in said, said
        yield process, found[1]


def ends_well(process: subprocess.Popen[str]) -> None:
    said, _ = process.communicate(timeout=60)
    assert said.endswith("all the same\n"), said


@pytest.mark.parametrize("streams", ["1", "4"])
@pytest.mark.parametrize("way", ["session:", "tcp:"])
def test_two_hosts_in_a_row_pass_a_path_on(program: Path, way: str, streams: str) -> None:
    with started(sys.executable, program) as listener, forward(line(listener)) as (last, second):  # noqa: SIM117
        with forward(second) as (_, first), started(sys.executable, program, way + first, streams, "30") as opener:
            ends_well(opener)
            last.send_signal(signal.SIGTERM)
            said, _ = last.communicate(timeout=10)
    assert last.returncode == 0, said
    figures = dict(re.findall(r"(\w+)=(\d+)", said.splitlines()[-1]))
    # Both ways carry the same, but for the frames around it.
    there, back = int(figures["bytes_there"]), int(figures["bytes_back"])
    assert there > 10**7 and abs(there - back) < 0.1 * there, said
    assert int(figures["total"]) == (5 if streams == "4" else 1), said


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGHUP])
def test_a_host_that_is_started_again_costs_no_bit(program: Path, end: signal.Signals) -> None:
    with started(sys.executable, program) as listener:
        to = line(listener)
        with forward(to) as (middle, first), started(sys.executable, program, "session:" + first, "3", "60") as opener:
            assert [line(opener) for _ in range(5)] == ["0", "1", "2", "3", "4"]
            middle.send_signal(end)
            assert middle.wait(timeout=10) == 0
            time.sleep(0.5)
            with forward(to, int(first.rsplit(":", 1)[1])):
                ends_well(opener)


def test_a_killed_program_is_told_through_the_host(program: Path) -> None:
    with started(sys.executable, program) as listener, forward(line(listener)) as (_, first):  # noqa: SIM117
        with started(sys.executable, program, "session:" + first, "2", "1000", "stay") as opener:
            assert [line(opener), line(opener)] == ["0", "1"]
            # A program that has nothing unread ends by an end, and not by a reset, after which it may come back.
            time.sleep(1)
            os.kill(opener.pid, signal.SIGKILL)
            said, _ = listener.communicate(timeout=30)
    # And not because the line was away for too long.
    assert "PeerLost" in said and "`outage`" not in said, said


def test_strangers_and_garbage_do_not_disturb_a_path(program: Path) -> None:
    with started(sys.executable, program) as listener, forward(line(listener)) as (_, first):
        host, port = first.rsplit(":", 1)
        with contextlib.ExitStack() as strangers:
            for number in range(200):
                stranger = strangers.enter_context(socket.create_connection((host, int(port)), 10))
                if number % 2:
                    stranger.sendall(os.urandom(1000))
            with started(sys.executable, program, "session:" + first, "2", "20") as opener:
                ends_well(opener)


def test_silent_strangers_make_way(program: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4096)), hard))
    with started(sys.executable, program) as listener, forward(line(listener)) as (middle, first):
        host, port = first.rsplit(":", 1)
        with contextlib.ExitStack() as strangers:
            for _ in range(1100):
                strangers.enter_context(socket.create_connection((host, int(port)), 10))
            with started(sys.executable, program, "session:" + first, "2", "20") as opener:
                ends_well(opener)
        middle.send_signal(signal.SIGTERM)
        said, _ = middle.communicate(timeout=10)
    assert "1024 connections are open" in said, said


def test_what_cannot_be_passed_on_is_told(program: Path) -> None:
    with forward("127.0.0.1:1") as (middle, first):
        opener = subprocess.run(
            [sys.executable, "-c", f"from titin.path import Path; Path('session:{first}', patience=1)"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "ConnectionFailed" in opener.stderr and first in opener.stderr, opener.stderr
        middle.send_signal(signal.SIGINT)
        said, _ = middle.communicate(timeout=10)
        # Once, although the opener has tried many times.
        assert said.count("the other host cannot be reached") == 1, said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["nowhere.invalid:1", "127.0.0.1:2"], "cannot listen at nowhere.invalid:1: "),
        (["127.0.0.1", "127.0.0.1:2"], "cannot listen at 127.0.0.1: "),
        (["127.0.0.1:{free}", "127.0.0.1"], "'127.0.0.1' is no address: write HOST:PORT"),
        (["127.0.0.1:{free}", "127.0.0.1:0"], "'127.0.0.1:0' is no address: write HOST:PORT"),
        (["127.0.0.1:{taken}", "127.0.0.1:2"], "cannot listen at 127.0.0.1:{taken}: Address already in use"),
        (["127.0.0.1:{free}", "127.0.0.1:{free}"], "127.0.0.1:{free} is this process itself"),
        (["0.0.0.0:{free}", "localhost:{free}"], "localhost:{free} is this process itself"),
    ],
)
def test_wrong_places_are_named(words: list[str], why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as other:
        taken, free = server.getsockname()[1], other.getsockname()[1]
        other.close()
        places = {"taken": taken, "free": free}
        words = [word.format(**places) for word in words]
        done = subprocess.run([TITIN, "forward", *words], capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 2, done
    assert f"error: {why.format(**places)}" in done.stderr, done.stderr
