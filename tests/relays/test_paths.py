"""Paths to programs at another site, to which relays lead."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..conftest import TITIN, WATCHDOG
from ..native.test_paths import make_key
from .conftest import Relay, Sites, free_port, row_without_transit, wait_until

#: One program listens, and sends each array back. The other one opens a path, and compares.
PROGRAM = """\
import sys, time
import numpy as np
from titin.path import Path, PathListener

place, rounds, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
random = np.random.default_rng(1)
if place.startswith("127"):
    with PathListener(place) as listener:
        print("listening", flush=True)
        path = listener.accept()
    with path:
        for number in range(rounds):
            path.send(path.receive())
else:
    with Path(place, "mesh", streams=4, outage=60, patience=20) as path:
        for number in range(rounds):
            array = random.random(int(10 ** random.uniform(0, 6)))
            path.send(array)
            assert np.array_equal(path.receive(), array), number
            print(number, flush=True)
            time.sleep(pause)
print("all the same", flush=True)
"""


class Pair:
    """A program at the site north that listens, and the address by which programs at the site south open a path."""

    def __init__(self, folder: Path, sites: Sites, rounds: int, pause: float = 0.0) -> None:
        """Starts the program that listens."""
        self.folder, self.sites, self.words = folder, sites, [str(rounds), str(pause)]
        make_key(folder)
        (folder / "program.py").write_text(PROGRAM)
        self.processes: list[subprocess.Popen[str]] = []
        self.place = f"127.0.0.1:{free_port()}"
        self.listener = self.start(self.place)
        assert self.listener.stdout
        assert self.listener.stdout.readline() == "listening\n"

    def start(self, place: str) -> subprocess.Popen[str]:
        """Starts a program."""
        env = os.environ | {"TITIN_PATH_KEY": str(self.folder / "key")}
        if place.startswith("relay:"):
            env["TITIN_RELAY"] = str(self.sites.south.folder)
        command = [sys.executable, self.folder / "program.py", place, *self.words]
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.processes.append(process)
        return process

    def open(self) -> subprocess.Popen[str]:
        """Starts a program at the site south that opens a path."""
        return self.start(f"relay:north/{self.place}")

    def close(self) -> None:
        """Ends the programs that are left."""
        for process in self.processes:
            process.kill()
            process.communicate()


@contextmanager
def pair(folder: Path, sites: Sites, rounds: int, pause: float = 0.0) -> Iterator[Pair]:
    both = Pair(folder, sites, rounds, pause)
    try:
        yield both
    finally:
        both.close()


def said(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=100)
    return out


def test_a_path_leads_to_another_site(sites: Sites, tmp_path: Path) -> None:
    with pair(tmp_path, sites, 20) as both:
        assert said(both.open()).endswith("19\nall the same\n")
        assert said(both.listener) == "all the same\n"
        assert both.listener.returncode == 0
    # The relays forget the path with its program.
    wait_until(lambda: all(not relay.status["runs"] for relay in (sites.north, sites.south)), "a run is left", 90)


def test_no_cut_of_the_line_costs_a_bit(sites: Sites, tmp_path: Path) -> None:
    with pair(tmp_path, sites, 60, 0.05) as both:
        opener = both.open()
        assert opener.stdout
        opener.stdout.readline()
        sites.line.disturb(random.Random(3), opener)
        assert "all the same" in said(opener)
        assert said(both.listener) == "all the same\n"


@pytest.mark.parametrize("which", ["north", "south"])
def test_a_relay_that_is_started_again_costs_no_bit(sites: Sites, tmp_path: Path, which: str) -> None:
    relay: Relay = getattr(sites, which)
    with pair(tmp_path, sites, 60, 0.05) as both:
        opener = both.open()
        assert opener.stdout
        opener.stdout.readline()
        relay.kill()
        relay.start()
        assert "all the same" in said(opener), relay.log
        assert said(both.listener) == "all the same\n"


@pytest.mark.parametrize("victim", ["listener", "opener"])
def test_a_killed_program_is_told_at_the_other_site(sites: Sites, tmp_path: Path, victim: str) -> None:
    with pair(tmp_path, sites, 10_000, 0.05) as both:
        ends = {"listener": both.listener, "opener": both.open()}
        assert ends["opener"].stdout
        ends["opener"].stdout.readline()
        killed = ends.pop(victim)
        killed.kill()
        [other] = ends.values()
        assert "PeerLost" in said(other)


#: Tries to open a path, and prints why that fails.
OPEN = """\
import sys
import titin
from titin.path import Path
try:
    Path(sys.argv[1], patience=float(sys.argv[2]))
except titin.Error as error:
    print(error)
"""


def refused(folder: Path, address: str, relay: Path | None, patience: float = 3) -> str:
    """Why no path is opened."""
    env = os.environ | {"TITIN_PATH_KEY": str(folder / "key")}
    env.pop("TITIN_RELAY", None)
    if relay:
        env["TITIN_RELAY"] = str(relay)
    command = [sys.executable, "-c", OPEN, address, str(patience)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=WATCHDOG)
    return done.stdout


def test_a_relay_that_is_not_there_yet_is_waited_for(sites: Sites, tmp_path: Path) -> None:
    with pair(tmp_path, sites, 3) as both:
        sites.south.kill()
        opener = both.open()
        with pytest.raises(subprocess.TimeoutExpired):
            opener.wait(2)
        sites.south.start()
        assert said(opener).endswith("all the same\n")


def test_why_no_path_is_opened_is_told(sites: Sites, tmp_path: Path) -> None:
    make_key(tmp_path)
    south = sites.south.folder
    place = f"relay:north/127.0.0.1:{free_port()}"
    assert "TITIN_RELAY does not name the folder of this site's relay" in refused(tmp_path, place, None)
    assert "nowhere/address: No such file" in refused(tmp_path, place, tmp_path / "nowhere")
    assert "It knows north" in refused(tmp_path, "relay:east/127.0.0.1:1", south)
    assert "nothing listens at 127.0.0.1" in refused(tmp_path, place, south)
    for wrong in ("relay:north", "relay:/host:1", "relay:north/host:0", "relay:north/:1"):
        assert f"'{wrong}' is no address" in refused(tmp_path, wrong, south)
    assert "stands alone" in refused(tmp_path, f"{place},127.0.0.1:1", south)
    sites.south.kill()
    assert "the relay of this site does not answer" in refused(tmp_path, place, south)


def test_a_relay_that_does_not_pass_on_is_told(tmp_path: Path, relays: Callable[..., Relay]) -> None:
    north, _, _ = row_without_transit(relays)
    make_key(tmp_path)
    assert "transit" in refused(tmp_path, "relay:east/127.0.0.1:1", north.folder, 8)


def test_files_go_by_relays(sites: Sites, tmp_path: Path) -> None:
    # In place of ssh: the other end is started on this very machine.
    (tmp_path / "ssh").write_text('#!/bin/sh\nshift 2\nexec "$@"\n')
    (tmp_path / "ssh").chmod(0o700)
    large = random.Random(1).randbytes(5_000_000)
    (tmp_path / "large").write_bytes(large)
    env = os.environ | {"TITIN_RELAY": str(sites.south.folder)}
    connections = sites.line.connections
    command: list[str | Path] = [
        TITIN,
        "copy",
        "--site",
        "north",
        "--ssh",
        str(tmp_path / "ssh"),
        "--titin",
        str(TITIN),
    ]
    for words in (["large", f"far:{tmp_path}/there"], [f"far:{tmp_path}/there", "back"]):
        done = subprocess.run(
            [*command, *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=WATCHDOG
        )
        assert done.returncode == 0 and done.stdout.startswith("1 file, 5.00 MB"), done
    assert (tmp_path / "back").read_bytes() == large
    # The line between the relays has carried them.
    assert sites.line.connections > connections
