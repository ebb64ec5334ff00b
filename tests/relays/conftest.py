"""Sites on this machine: relays with addresses on loopback, and lines between them that a test can cut."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest

from ..conftest import TITIN, WATCHDOG, may_leave, needs

#: Two programs that send each other arrays of many sizes, each derived from the last one received, so that a byte
#: lost, doubled or changed shows in the digests that they print.
EXCHANGE = """\
import hashlib, sys, time
import numpy as np
import titin

leads, steps, most, pause = sys.argv[1] == "a", int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
digest = hashlib.sha256()
rng = np.random.default_rng(7)
with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        for step in range(steps):
            size = 1 + (step * 1_670_909) % most
            mine = rng.integers(0, 2**63, size=size, dtype=np.int64) + leads
            instance.send("out", mine, timestamp=float(step))
            got = np.asarray(instance.receive("in").data)
            digest.update(got.tobytes())
            time.sleep(pause)
print(digest.hexdigest())
"""

MODEL = """\
ymmsl_version: v0.2
models:
  exchange:
    components:
      a: {{description: here, ports: {{o_i: out, s: in}}, implementation: a}}
      b: {{description: there, ports: {{o_i: out, s: in}}, implementation: b}}
    conduits: {{a.out: b.in, b.out: a.in}}
programs:
  a: {{executable: {python}, args: [{folder}/exchange.py, a, "{steps}", "{most}", "{pause}"]}}
  b: {{executable: {python}, args: [{folder}/exchange.py, b, "{steps}", "{most}", "{pause}"]}}
titin:
  sites: {{south: {{relay: "{relay}"}}}}
  hosts:
    localhost: {{components: [a]}}
    far: {{site: south, start: {start}, components: [b]}}
{more}
"""


def expected_digests(steps: int, most: int) -> list[str]:
    """What the two programs print, without titin: the digests of what the other one sends."""
    import hashlib

    import numpy as np

    def of(leads: bool) -> str:
        rng, digest = np.random.default_rng(7), hashlib.sha256()
        for step in range(steps):
            size = 1 + (step * 1_670_909) % most
            digest.update((rng.integers(0, 2**63, size=size, dtype=np.int64) + leads).tobytes())
        return digest.hexdigest()

    return [of(leads=False), of(leads=True)]


#: Ports that the system gives to nobody by itself, others for each process of pytest.
PORTS = itertools.count(20_000 + 1000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")))


def free_port() -> int:
    """A port of loopback that nothing uses."""
    for port in PORTS:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError


class Line:
    """A line to a port of loopback, which can be cut: a proxy that passes bytes on."""

    def __init__(self, to: int) -> None:
        """Begins to take connections."""
        self.to = to
        self.is_up = True
        self.pause = 0.0
        self.connections = 0
        self.sockets: set[socket.socket] = set()
        self.threads: list[threading.Thread] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.begin(self.serve)

    def begin(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        """Starts a thread."""
        self.threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self.threads[-1].start()

    def serve(self) -> None:
        """Takes connections until the line is closed."""
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to)) if self.is_up else None
            except OSError:
                far = None
            if far is None:
                near.close()
                continue
            self.connections += 1
            self.sockets |= {near, far}
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.begin(self.copy, near, far)
            self.begin(self.copy, far, near)

    def copy(self, source: socket.socket, sink: socket.socket) -> None:
        """Passes bytes on in one direction, and the end. Pauses after each 64 KiB, if so told."""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
                time.sleep(self.pause)
            sink.shutdown(socket.SHUT_WR)

    def disturb(self, chance: random.Random, process: subprocess.Popen[str]) -> None:
        """Breaks the connections or cuts the line again and again, until a run ends, for 90 s at most."""
        deadline = time.monotonic() + 90
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(chance.uniform(0.1, 0.6))
            if chance.random() < 0.5:
                self.reset()
            else:
                self.cut()
                time.sleep(chance.uniform(0.0, 0.3))
                self.mend()

    def reset(self) -> None:
        """Breaks the connections that there are. New ones may come."""
        for one in set(self.sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        """Breaks all connections, and takes no more."""
        self.is_up = False
        self.reset()

    def mend(self) -> None:
        """Takes connections again."""
        self.is_up = True

    def close(self) -> None:
        """Ends the threads."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.cut()
        # The thread that takes connections may have taken one more.
        self.threads[0].join()
        self.reset()
        for thread in self.threads:
            thread.join()
        for one in self.sockets:
            one.close()


class Tap(Line):
    """A line that keeps the bytes that pass, and may hold them up."""

    def __init__(self, to: int) -> None:
        """Begins to take connections."""
        self.passed = bytearray()
        self.is_open = threading.Event()
        self.is_open.set()
        super().__init__(to)

    def copy(self, source: socket.socket, sink: socket.socket) -> None:
        """Passes bytes on in one direction, and keeps them."""
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self.is_open.wait()
                self.passed += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def abort(self) -> None:
        """Resets the connections that there are, as a network may."""
        nowhere = struct.pack("@H14x", socket.AF_UNSPEC)
        for one in set(self.sockets):
            ctypes.CDLL(None).connect(one.fileno(), nowhere, len(nowhere))

    def close(self) -> None:
        """Ends the threads."""
        self.is_open.set()
        super().close()


@dataclass
class Relay:
    """A relay, in a folder of its own."""

    site: str
    folder: Path
    host: str = "127.0.0.1"
    local: int = field(default_factory=free_port)
    listen: int | None = None
    process: subprocess.Popen[bytes] | None = None
    #: The daemon of another build, in place of that of the package.
    program: Path | None = None
    #: The words of a command that starts the daemon elsewhere, such as in another network.
    starter: Sequence[str] = ()

    def init(self, *, open_port: bool) -> None:
        """Makes the relay's folder."""
        self.listen = free_port() if open_port else None
        options = ["--local", f"{self.host}:{self.local}"]
        if self.listen:
            options += ["--listen", f"{self.host}:{self.listen}"]
        self.titin("init", self.site, *options)

    def titin(self, action: str, *words: str) -> str:
        """What ``titin relay`` prints."""
        command = [TITIN, "relay", action, *words, "--folder", self.folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the relay's key."""
        return self.titin("fingerprint").strip()

    def trust(self, other: Relay, *options: str, port: int | None = None) -> None:
        """Trusts another relay, which may be reached by a port of loopback."""
        address = ["--address", f"127.0.0.1:{port}"] if port else []
        self.titin("trust", other.site, other.fingerprint, *address, *options)

    def start(self) -> None:
        """Starts the daemon."""
        command = [self.program, self.folder] if self.program else [TITIN, "relay", "run", "--folder", self.folder]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen([*self.starter, *command], stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while not self.answers():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def answers(self) -> bool:
        """Whether the daemon takes connections."""
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.local)) == 0

    def kill(self) -> None:
        """Kills the daemon."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    @property
    def log(self) -> str:
        """What the daemon has logged."""
        return (self.folder / "log").read_text()

    @property
    def status(self) -> dict[str, Any]:
        """The state of the daemon."""
        found: dict[str, Any] = json.loads(self.titin("status", "--json"))
        return found

    def peer(self, site: str) -> dict[str, Any]:
        """The state of the link to another site."""
        peers: list[dict[str, Any]] = self.status["peers"]
        return next(peer for peer in peers if peer["site"] == site)


def wait_until(is_so: Callable[[], object], what: str | Callable[[], str], seconds: float = 30) -> None:
    """Waits until something is so. ``what`` says what is wrong once the time is over."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(0.02)


def row_without_transit(relays: Callable[..., Relay]) -> tuple[Relay, Relay, Relay]:
    """The running relays of north, south and east. South lies between the others, and is not to pass runs on."""
    north, south, east = relays("north"), relays("south"), relays("east")
    for one, other in ((north, south), (south, east)):
        one.trust(other, port=other.listen)
        other.trust(one)
    north.titin("trust", "east", "--via", "south")
    east.titin("trust", "north", "--via", "south")
    for relay in (north, south, east):
        relay.start()
    wait_until(lambda: south.peer("east")["connected"] and south.peer("north")["connected"], "no connections")
    return north, south, east


@dataclass
class ByHand:
    """A run whose agent is started by hand."""

    process: subprocess.Popen[str]
    #: What the run has said.
    said: Path
    #: The line that starts the agent.
    line: str
    #: Another folder than that of the run.
    elsewhere: Path

    @property
    def token(self) -> str:
        """The token in the line."""
        return self.line.split()[1]

    def start_agent(self, *shell_command: str) -> subprocess.Popen[str]:
        """Gives the line to a shell, which reads it as from a terminal: no command line has the token."""
        shell = subprocess.Popen(
            shell_command or ["sh"],
            cwd=self.elsewhere,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert shell.stdin
        shell.stdin.write(self.line + "\n")
        shell.stdin.close()
        # What is closed is not to be flushed.
        shell.stdin = None
        return shell


@dataclass
class Sites:
    """Two sites, north and south. South dials north by a line."""

    folder: Path
    north: Relay
    south: Relay
    line: Line

    def write(self, steps: int, most: int, pause: float = 0.0, more: str = "", start: str = "[env]") -> None:
        """Writes the model and its program."""
        (self.folder / "exchange.py").write_text(EXCHANGE)
        text = MODEL.format(
            python=sys.executable,
            folder=self.folder,
            relay=f"{self.south.host}:{self.south.local}",
            steps=steps,
            most=most,
            pause=pause,
            start=start,
            more=more,
        )
        (self.folder / "model.ymmsl").write_text(text)

    def tap(self) -> list[Tap]:
        """Puts a tap between the relay of each site and the processes of the site that dial it."""
        taps = [Tap(relay.local) for relay in (self.north, self.south)]
        model = self.folder / "model.ymmsl"
        model.write_text(model.read_text().replace(f":{self.south.local}", f":{taps[1].port}"))
        # The manager finds the relay of its site by the folder.
        self.north.folder = shutil.copytree(self.north.folder, self.folder / "tapped")
        config = self.north.folder / "relay.toml"
        config.write_text(config.read_text().replace(f":{self.north.local}", f":{taps[0].port}"))
        return taps

    def begin(self, output: int | IO[str] = subprocess.PIPE) -> subprocess.Popen[str]:
        """Starts the run."""
        command = [TITIN, "run", "model.ymmsl", "--run-dir", "run", "--relay", self.north.folder]
        return subprocess.Popen(command, cwd=self.folder, stdout=output, stderr=subprocess.STDOUT, text=True)

    def begin_by_hand(self) -> ByHand:
        """Starts the run, whose agent is started by hand, and waits for the line that starts the agent."""
        said = self.folder / "said"
        with said.open("w") as output:
            process = self.begin(output)
        beginning = "  on far at the site south:  "
        wait_until(lambda: beginning in said.read_text(), "the run prints no line to start the agent")
        line = next(line for line in said.read_text().splitlines() if line.startswith(beginning))
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        return ByHand(process, said, line.removeprefix(beginning), elsewhere)

    def run(self) -> tuple[int, str]:
        """Runs to the end."""
        process = self.begin()
        out, _ = process.communicate(timeout=WATCHDOG)
        return process.returncode, out

    def printed(self) -> list[str]:
        """The digests that the two programs have printed."""
        return [(self.folder / f"run/instances/{name}/stdout.txt").read_text().strip() for name in "ab"]


@pytest.fixture
def relays(tmp_path: Path) -> Iterator[Callable[..., Relay]]:
    """Makes relays, which end with the test."""
    made: list[Relay] = []

    def make(site: str, *, open_port: bool = True, host: str = "127.0.0.1") -> Relay:
        relay = Relay(site, tmp_path / "relays" / site, host)
        relay.init(open_port=open_port)
        made.append(relay)
        return relay

    yield make
    for relay in made:
        relay.kill()


def two_sites(folder: Path, relays: Callable[..., Relay], host: str = "127.0.0.1") -> Iterator[Sites]:
    """Two sites with relays that run. The relay of south is reached at an address of this machine."""
    north, south = relays("north"), relays("south", open_port=False, host=host)
    assert north.listen
    line = Line(north.listen)
    north.trust(south)
    south.trust(north, port=line.port)
    for relay in (north, south):
        relay.start()
    wait_until(lambda: north.peer("south")["connected"], "the relays do not connect")
    yield Sites(folder, north, south, line)
    line.close()


@pytest.fixture
def sites(tmp_path: Path, relays: Callable[..., Relay]) -> Iterator[Sites]:
    """Two sites, on one host."""
    yield from two_sites(tmp_path, relays)


@pytest.fixture
def far_network() -> Iterator[tuple[str, str, str]]:
    """A network of its own: its name, its interface here, and the address of this machine in it."""
    needs("ip")
    if not may_leave():
        pytest.skip("networks are for root")
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    name, near = f"titin-far-{number}", f"titin-far{number}"
    # The system ends a network later than it says, so the two ends of the cable go first.
    remove = [["ip", "link", "delete", near], ["ip", "netns", "delete", name]]
    for command_line in remove:
        subprocess.run(command_line, capture_output=True, check=False)
    for command in (
        f"netns add {name}",
        f"link add {near} type veth peer name eth0 netns {name}",
        f"address add 10.73.{number}.1/24 dev {near}",
        f"link set {near} up",
        f"-n {name} address add 10.73.{number}.2/24 dev eth0",
        f"-n {name} link set lo up",
        f"-n {name} link set eth0 up",
    ):
        subprocess.run(["ip", *command.split()], check=True)
    yield name, near, f"10.73.{number}.1"
    for command_line in remove:
        subprocess.run(command_line, capture_output=True, check=False)
