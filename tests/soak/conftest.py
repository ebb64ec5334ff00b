"""What the soak tests share: programs that send without end, sites that are apart, and the memory of every process."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks import soak

from ..conftest import TITIN, may_leave, needs
from ..relays import conftest as of_relays
from ..relays.conftest import Relay, relays, wait_until

__all__ = ["relays"]

# A relay that is away for a while must find its port free again, whatever tests run beside these.
of_relays.PORTS = itertools.count(30_000 + os.getpid() % 100 * 20)

MIB = 1 << 20
PAIR = [("north", "south")]

#: The leader, whose name begins with a, and its peer send each other arrays, up to `window` messages ahead of what they
#: receive, until the file `stop` is there. An empty array is the end. Each prints the digest of all bytes received, and
#: how many messages it has sent and received.
FLOW = """\
import hashlib, sys, time
from pathlib import Path
import numpy as np
import titin

name, most, window, pause, stop = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5])
digest = hashlib.sha256()
rng = np.random.default_rng(list(name.encode()))
sent = received = 0
ended = over = False
with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        while not (ended and over):
            if not ended:
                ended = over or (name[0] == "a" and stop.exists())
                size = 0 if ended else 1 + (sent * 7919) % most
                instance.send("out", rng.integers(0, 2**63, size=size, dtype=np.int64), timestamp=float(sent))
                sent += not ended
            if not over and (ended or sent > window):
                got = np.asarray(instance.receive("in").data)
                digest.update(got.tobytes())
                over = len(got) == 0
                received += not over
            time.sleep(pause)
print(digest.hexdigest(), sent, received)
"""


def digest_of(name: str, count: int, most: int) -> str:
    """The digest of the first messages that an instance of ``FLOW`` sends, without titin."""
    rng, digest = np.random.default_rng(list(name.encode())), hashlib.sha256()
    for sent in range(count):
        digest.update(rng.integers(0, 2**63, size=1 + (sent * 7919) % most, dtype=np.int64).tobytes())
    return digest.hexdigest()


def amount(name: str, default: float) -> float:
    """How much of something a test does: the environment variable ``TITIN_SOAK_...``, or the default."""
    return float(os.environ.get(f"TITIN_SOAK_{name}", default))


#: The figures of the test that runs, and those of all tests that have passed.
FIGURES: dict[str, Any] = {}
OF_TESTS: dict[str, dict[str, Any]] = {}


def note(**figures: Any) -> None:
    """Prints figures of the test that runs, and keeps them for the results of the soak."""
    print(", ".join(f"{name.replace('_', ' ')} {figure}" for name, figure in figures.items()))
    FIGURES.update(figures)


@pytest.fixture(autouse=True)
def figures(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collects the figures of a test that passes."""
    FIGURES.clear()
    began, failed = time.monotonic(), request.session.testsfailed
    yield
    if FIGURES and request.session.testsfailed == failed:
        OF_TESTS[request.node.name] = {"seconds": round(time.monotonic() - began), **FIGURES}


def pytest_sessionfinish() -> None:
    """Writes the figures of the tests. Less than a whole soak is a look, and no result."""
    if OF_TESTS:
        chosen = {name for name in os.environ if name.startswith("TITIN_SOAK_")} - {"TITIN_SOAK_SEED"}
        print(f"figures: {soak.save(OF_TESTS, quick=bool(chosen))}")


def chosen_seed() -> int:
    """The seed of what happens at random. It is printed, and may be given."""
    seed = int(amount("SEED", int.from_bytes(os.urandom(3))))
    print(f"\nTITIN_SOAK_SEED={seed}")
    return seed


class Process(NamedTuple):
    """A process. Its start distinguishes it from a later process of the same number."""

    pid: int
    start: int
    command: str

    @property
    def is_alive(self) -> bool:
        """Whether the process is there, and not a zombie."""
        with contextlib.suppress(OSError):
            state, *rest = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
            return state not in "ZX" and int(rest[18]) == self.start
        return False

    @property
    def role(self) -> str:
        """What the process is for titin; empty if it is nothing."""
        program, first, *rest = [*self.command.split(), "", ""]
        if program.endswith("titin-relayd"):
            return f"relay {Path(first).name}"
        if program.endswith("titin") and first in ("run", "guard"):
            return {"run": "manager", "guard": "guard"}[first]
        if program.endswith("titin") and first == "agent":
            return f"agent {rest[1]}"
        if "python" in program and first.endswith(".py"):
            return f"program {rest[0]}"
        return ""

    @property
    def memory(self) -> int:
        """The most memory that the process has had in use, in bytes."""
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) << 10
        return 0


def processes_below(*roots: int) -> list[Process]:
    """These processes and all that they have started."""
    parents: dict[int, int] = {}
    starts: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            rest = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            parents[int(entry.name)], starts[int(entry.name)] = int(rest[1]), int(rest[19])

    def is_below(pid: int) -> bool:
        while pid in parents and pid not in roots:
            pid = parents[pid]
        return pid in roots

    found = []
    for pid in sorted(parents):
        if is_below(pid):
            with contextlib.suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(Process(pid, starts[pid], command))
    return found


class Memory:
    """The largest memory of some processes and all below them, by what they are for titin, seen four times a second."""

    def __init__(self, roots: Callable[[], Sequence[int]]) -> None:
        """Begins to look. ``roots`` says which processes there are now."""
        self.roots = roots
        self.largest: dict[str, int] = {}
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self) -> None:
        """Looks until it is over."""
        while not self.is_over.wait(0.25):
            for process in processes_below(*self.roots()):
                if role := process.role:
                    self.largest[role] = max(self.largest.get(role, 0), process.memory)

    def end(self) -> None:
        """Ends the thread."""
        self.is_over.set()
        self.thread.join()

    def check(self, **bounds: int) -> None:
        """Prints and checks what has been seen."""
        print_and_check_memory(self.largest, **bounds)


def print_and_check_memory(largest: Mapping[str, int], **bounds: int) -> None:
    """Prints the memory, and compares that of relays, agents, programs and so on with bounds in MiB.

    A process of titin's own takes some 10 MiB, whatever passes through it, and a relay 320 KiB more for each of up to
    128 streams of a link.
    """
    bounds = {"program": 512, "relay": 64} | bounds
    kinds: dict[str, int] = {}
    for role, size in largest.items():
        kind = role if role.startswith("relay") else role.split()[0]
        kinds[kind] = max(size, kinds.get(kind, 0))
    note(memory_mib={kind: round(size / MIB, 1) for kind, size in sorted(kinds.items())})
    for role, size in largest.items():
        bound = bounds.get(role.split()[0], 32)
        assert size < bound * MIB, f"{role} has taken {size / MIB:.0f} MiB, more than {bound}"
    assert {"relay", "manager", "agent", "program"} <= {role.split()[0] for role in largest}


@dataclass
class FarRelay(Relay):
    """A relay in a network of its own."""

    network: str = ""

    @property
    def inside(self) -> list[str]:
        """The words before a command that is to run in the relay's network."""
        return ["ip", "netns", "exec", self.network]

    def titin(self, action: str, *words: str) -> str:
        """What ``titin relay`` prints."""
        command = [*self.inside, TITIN, "relay", action, *words, "--folder", self.folder]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    def start(self) -> None:
        """Starts the daemon."""
        with (self.folder / "log").open("ab") as log:
            command = [*self.inside, TITIN, "relay", "run", "--folder", self.folder]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self.answers, "the relay does not answer")

    def answers(self) -> bool:
        """Whether the daemon takes connections, and says how it is."""
        assert self.process and self.process.poll() is None, self.log
        with contextlib.suppress(subprocess.CalledProcessError):
            return bool(self.status)
        return False


@dataclass
class Soak:
    """A run over sites. The first relay is that of the manager."""

    folder: Path
    relays: Sequence[Relay]
    starts: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[str] | None = None
    memory: Memory | None = None
    began: float = 0.0
    most: int = 0
    names: list[tuple[str, str]] = field(default_factory=list)

    @property
    def stop(self) -> Path:
        """The file at which the programs end."""
        return self.folder / "stop"

    def sections(self, components: Mapping[str, Sequence[str]], more: str = "") -> str:
        """The section ``titin`` of a description, with the components at each site."""
        first, *others = self.relays
        far = [f'    {relay.site}: {{relay: "{relay.host}:{relay.local}"}}' for relay in others]
        hosts = [
            f"    at-{relay.site}: {{site: {relay.site}, start: {self.starts.get(relay.site, '[env]')}, "
            f"components: [{', '.join(components[relay.site])}]}}"
            for relay in others
        ]
        near = f"    localhost: {{components: [{', '.join(components[first.site])}]}}"
        return "\n".join(["titin:", "  sites:", *far, "  hosts:", near, *hosts, more]) + "\n"

    def begin_flow(
        self, pairs: Sequence[tuple[str, str]], most: int, window: int = 4, pause: float = 0.02, more: str = ""
    ) -> None:
        """Starts a run with a leader and its peer at each pair of sites."""
        self.most = most
        self.names = [(f"a{index}", f"b{index}") for index in range(len(pairs))]
        components: dict[str, list[str]] = {relay.site: [] for relay in self.relays}
        for places, names in zip(pairs, self.names, strict=True):
            for site, name in zip(places, names, strict=True):
                components[site].append(name)
        (self.folder / "flow.py").write_text(FLOW)
        lines = ["ymmsl_version: v0.2", "models:", "  soak:", "    components:"]
        everyone = [name for names in self.names for name in names]
        lines += [
            f"      {name}: {{description: x, ports: {{o_i: out, s: in}}, implementation: {name}}}" for name in everyone
        ]
        lines.append("    conduits:")
        lines += [f"      {one}.out: {other}.in" for names in self.names for one, other in (names, names[::-1])]
        lines.append("programs:")
        lines += [
            f"  {name}: {{executable: {sys.executable}, "
            f'args: [{self.folder}/flow.py, {name}, "{most}", "{window}", "{pause}", {self.stop}]}}'
            for name in everyone
        ]
        self.begin("\n".join(lines) + "\n" + self.sections(components, more))

    def begin(self, model: str) -> None:
        """Starts the run of a model, and to look at memory."""
        (self.folder / "model.ymmsl").write_text(model)
        first = self.relays[0]
        inside = first.inside if isinstance(first, FarRelay) else ["env"]
        with (self.folder / "out").open("w") as out:
            self.process = process = subprocess.Popen(
                [*inside, TITIN, "run", "model.ymmsl", "--run-dir", "run", "--relay", first.folder],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                text=True,
            )
        self.began = time.monotonic()
        self.memory = Memory(lambda: [process.pid, *(one.pid for relay in self.relays if (one := relay.process))])

    def await_programs(self, count: int = 2) -> None:
        """Waits until all programs have joined the run."""
        wait_until(lambda: self.said.count("joined:") == count or self.is_over, "not all have joined", 120)
        assert not self.is_over, self.said

    @property
    def said(self) -> str:
        """What the run has printed."""
        return (self.folder / "out").read_text()

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        assert self.process
        return self.process.poll() is not None

    def pass_time(self, seconds: float) -> None:
        """Waits while the run goes on. A run that ends meanwhile is a failure."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            assert not self.is_over, self.said
            time.sleep(min(left, 0.2))

    def find(self, role: str) -> Process | None:
        """The process of the run with this role, if there is one."""
        assert self.process
        return next((process for process in processes_below(self.process.pid) if process.role == role), None)

    def end(self, seconds: float = 120, **bounds: int) -> None:
        """Lets the programs end, and waits for the end of the run. Compares all digests, and the memory."""
        self.stop.touch()
        self.wait(seconds)
        passed = time.monotonic() - self.began
        moved = 0
        for names in self.names:
            printed = {name: self.output(name).split() for name in names}
            for one, other in (names, names[::-1]):
                _, sent, _ = printed[one]
                digest, _, received = printed[other]
                assert received == sent, f"{other} has received {received} messages of the {sent} that {one} has sent"
                assert digest == digest_of(one, int(sent), self.most), f"{other} has received other bytes"
                moved += int(sent)
        note(messages=moved, run_seconds=round(passed))
        assert self.memory
        self.memory.check(**bounds)

    def wait(self, seconds: float) -> None:
        """Waits for the end of the run, which must be a good one."""
        assert self.process and self.memory
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the run has not ended after {seconds} s:\n{self.said}")
        self.memory.end()
        assert self.process.returncode == 0, self.said

    def output(self, name: str) -> str:
        """What an instance has printed."""
        return (self.folder / f"run/instances/{name}/stdout.txt").read_text().strip()

    def close(self) -> None:
        """Ends what is left after a failure."""
        if self.memory:
            self.memory.end()
        if self.process and self.process.poll() is None:
            for process in processes_below(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture
def near_soak(tmp_path: Path, relays: Callable[..., Relay]) -> Iterator[Soak]:
    """Two sites on this machine, north and south."""
    north, south = relays("north"), relays("south", open_port=False)
    north.trust(south)
    south.trust(north, port=north.listen)
    for relay in (north, south):
        relay.start()
    wait_until(lambda: north.peer("south")["connected"], "the relays do not connect")
    soak = Soak(tmp_path, [north, south])
    yield soak
    soak.close()


class Wan:
    """A wide-area line between two networks, by the emulator that ``TITIN_WANEM`` names."""

    name = f"soak{os.getpid()}"

    def call(self, *words: str) -> str:
        """Gives the emulator a command."""
        command = [os.environ["TITIN_WANEM"], *words]
        environment = os.environ | {"WANEM_NAME": self.name}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def wan() -> Iterator[Wan]:
    """A line with a round trip of 15 ms."""
    if "TITIN_WANEM" not in os.environ:
        assert "CI" not in os.environ, "TITIN_WANEM is not set"
        pytest.skip("TITIN_WANEM does not name wanem.sh, the emulator of a wide-area line")
    needs("ip", os.environ["TITIN_WANEM"])
    if not may_leave():
        pytest.skip("networks are for root")
    line = Wan()
    line.call("up", "--rtt", "15", "--rate", "1000")
    yield line
    line.call("down")


@pytest.fixture
def far_soak(tmp_path: Path, wan: Wan) -> Iterator[Soak]:
    """Two sites, north and south, with a wide-area line between them. South dials north."""
    north, south = (
        FarRelay(site, tmp_path / "relays" / site, network=f"{wan.name}{end}")
        for site, end in (("north", "A"), ("south", "B"))
    )
    try:
        north.titin("init", "north", "--local", f"127.0.0.1:{north.local}", "--listen", "10.71.0.1:4711")
        south.titin("init", "south", "--local", f"127.0.0.1:{south.local}")
        north.trust(south)
        south.titin("trust", "north", north.fingerprint, "--address", "10.71.0.1:4711")
        for relay in (north, south):
            relay.start()
        wait_until(lambda: north.peer("south")["connected"], "the relays do not connect")
        soak = Soak(tmp_path, [north, south], {"south": f"[{', '.join(south.inside)}]"})
        yield soak
        soak.close()
    finally:
        for relay in (north, south):
            relay.kill()
