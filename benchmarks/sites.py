"""Two sites, for the benchmarks between sites: an emulated line between network namespaces, and the relays of the
sites."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import ROOT, run
from benchmarks.native import TITIN

#: The environment variable that names the emulator.
VARIABLE = "TITIN_WANEM"
MISSING = f"""\
Benchmarks between sites need root and an emulator of a wide-area line: {VARIABLE} names a command with `up --rtt MS \
--rate MBIT --loss PERCENT --cc NAME --tcp-buf BYTES --nodes 1` and `down`. It joins the network namespaces NAMEA \
(10.71.0.1) and NAMEB (10.71.0.2) by a device `wan0`, where NAME is $WANEM_NAME, and puts the namespace NAMEA-n1 \
behind NAMEA (10.71.11.254) and NAMEB-n1 behind NAMEB (10.71.12.254). Its process id is in /run/wanem/NAME/pid."""

#: The prefix of all namespaces here. Measurements at the same time need different ones.
NAME = os.environ.get("WANEM_NAME", "titinlines")
RATE, BUFFER = 1000, 134217728


@dataclass
class Site:
    """A site: the commands that enter its front end and its compute node, and the addresses of its relay."""

    name: str
    local: str
    listen: str
    front: Sequence[str] = ()
    node: Sequence[str] = ()

    @property
    def host(self) -> str:
        """The address of the front end on the line."""
        return self.listen.rsplit(":", 1)[0]

    def titin(self, folder: Path, action: str, *words: str) -> str:
        """What ``titin relay`` prints at the front end."""
        return run([*self.front, TITIN, "relay", action, *words, "--folder", folder / self.name], folder)


def inside(namespace: str) -> list[str]:
    """The words before a command that run it inside a network namespace."""
    return ["ip", "netns", "exec", namespace]


def emulator() -> str:
    """The emulator's command."""
    command = os.environ.get(VARIABLE)
    if not command or os.geteuid() != 0:
        raise SystemExit(MISSING)
    return command


def prepare(*packages: str) -> None:
    """Ends the benchmark if there is no emulator; installs what is missing; a signal to end takes lines down first."""
    emulator()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    subprocess.run([ROOT / "tools" / "packages.sh", "ip:iproute2", *packages], check=True)


@contextlib.contextmanager
def line(name: str, rtt: float, loss: float, control: str, rate: int = RATE) -> Iterator[list[Site]]:
    """An emulated line, with the sites north and south at its ends. ``rate`` is in Mbit/s."""
    command, environment = emulator(), os.environ | {"WANEM_NAME": name}
    words = ["--rtt", rtt, "--rate", rate, "--loss", loss, "--cc", control, "--tcp-buf", BUFFER, "--nodes", 1]
    try:
        subprocess.run([command, "up", *map(str, words)], env=environment, check=True)
        yield [
            Site("north", "10.71.11.254:4710", "10.71.0.1:4711", inside(f"{name}A"), inside(f"{name}A-n1")),
            Site("south", "10.71.12.254:4710", "10.71.0.2:4711", inside(f"{name}B"), inside(f"{name}B-n1")),
        ]
    finally:
        subprocess.run([command, "down"], env=environment, check=True)


@contextlib.contextmanager
def line_in_halves(rtt: float, loss: float, control: str) -> Iterator[list[Site]]:
    """A line of two emulated lines in series, with the sites north, middle and south. The middle also forwards packets
    from north to south."""
    first, second = f"{NAME}first", f"{NAME}second"
    with line(first, rtt / 2, loss / 2, control) as (north, middle), line(second, rtt / 2, loss / 2, control) as ends:
        between, south = f"{first}B", ends[1]
        commands = [
            # Both lines have the same addresses; the second one gets others, and a pair of devices joins the two.
            f"ip -n {between} link add half type veth peer name half netns {second}A",
            f"ip -n {between} addr add 10.72.0.1/24 dev half",
            f"ip -n {second}A addr add 10.72.0.2/24 dev half",
            f"ip -n {between} link set half up",
            f"ip -n {second}A link set half up",
            f"ip -n {second}A addr add 10.73.0.1/24 dev wan0",
            f"ip -n {second}B addr add 10.73.0.2/24 dev wan0",
            f"ip -n {first}A addr add 10.74.0.1/24 dev wan0",
            f"ip -n {between} addr add 10.74.0.2/24 dev wan0",
            f"ip -n {first}A route add 10.73.0.0/24 via 10.74.0.2",
            f"ip -n {between} route add 10.73.0.0/24 via 10.72.0.2",
            f"ip -n {second}A route add 10.74.0.0/24 via 10.72.0.1",
            f"ip -n {second}B route add 10.74.0.0/24 via 10.73.0.1",
            f"ip -n {second}B route add 10.72.0.0/24 via 10.73.0.1",
            f"ip netns exec {between} sysctl -qw net.ipv4.ip_forward=1",
            f"ip netns exec {second}A sysctl -qw net.ipv4.ip_forward=1",
        ]
        for command in commands:
            subprocess.run(command.split(), check=True)
        north.listen, south.listen = "10.74.0.1:4711", "10.73.0.2:4711"
        middle = Site("middle", "127.0.0.1:4710", "0.0.0.0:4711", middle.front)
        yield [north, middle, south]


def process_of(name: str) -> str | None:
    """The process of an emulated line."""
    path = Path(f"/run/wanem/{name}/pid")
    return path.read_text().strip() if path.exists() else None


@dataclass
class Relays:
    """The running relays of sites; the first of them is the manager's."""

    folder: Path
    sites: Sequence[Site]
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The numbers of the processes."""
        return [str(process.pid) for process in self.processes]

    def start(self, site: Site) -> None:
        """Starts the relay of a site."""
        command = [*site.front, TITIN, "relay", "run", "--folder", self.folder / site.name]
        with (self.folder / f"{site.name}.log").open("ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def is_connected(self) -> bool:
        """Whether the first relay has a connection to each neighbour."""
        first = self.sites[0]
        command = [*first.front, TITIN, "relay", "status", "--json", "--folder", self.folder / first.name]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode:
            return False
        peers = json.loads(done.stdout)["peers"]
        return all(peer["connected"] for peer in peers if not peer.get("via"))

    def wait(self) -> None:
        """Waits until the relays have connected."""
        deadline = time.monotonic() + 60
        while not self.is_connected():
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                logs = "\n".join(path.read_text() for path in self.folder.glob("*.log"))
                raise SystemExit(f"the relays do not connect:\n{logs}")
            time.sleep(0.1)

    def places(self, here: Sequence[str], there: Sequence[str]) -> str:
        """The lines of a description below ``titin:`` by which components run at the compute nodes of the first and of
        the last site."""
        far = self.sites[-1]
        return (
            f'  sites: {{{far.name}: {{relay: "{far.local}"}}}}\n'
            "  hosts:\n"
            f"    localhost: {{components: {json.dumps(here)}}}\n"
            f"    far: {{site: {far.name}, start: {json.dumps([*far.node, 'env'])}, components: {json.dumps(there)}}}\n"
        )

    def titin_run(self, model: str, folder: Path) -> None:
        """Runs a model with this text from the compute node of the first site. All files go into the folder."""
        here = self.sites[0]
        (folder / "model.ymmsl").write_text(model)
        words = ["--run-dir", folder / "run", "--relay", self.folder / here.name]
        run([*here.node, TITIN, "run", "model.ymmsl", *words], folder)

    def stop(self) -> None:
        """Ends the relays."""
        for process in self.processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def relays(folder: Path, sites: Sequence[Site], control: str | None = None) -> Iterator[Relays]:
    """Relays for the sites, each of which trusts its neighbours in the list. A relay in the middle passes runs on."""
    folder.mkdir()
    for site in sites:
        site.titin(folder, "init", site.name, "--local", site.local, "--listen", site.listen)
        if control and control != "bbr":
            config = folder / site.name / "relay.toml"
            before, found, after = config.read_text().partition("\nlocal =")
            assert found, config
            config.write_text(f'{before}\ncongestion = "{control}"{found}{after}')
    transit = ["--transit"] if len(sites) > 2 else []
    for one, other in itertools.pairwise(sites):
        for near, far, address in ((one, other, None), (other, one, reached(one))):
            place = ["--address", address] if address else []
            key = far.titin(folder, "fingerprint").strip()
            near.titin(folder, "trust", far.name, key, *place, *transit)
    if transit:
        sites[0].titin(folder, "trust", sites[-1].name, "--via", sites[1].name)
        sites[-1].titin(folder, "trust", sites[0].name, "--via", sites[-2].name)
    started = Relays(folder, sites)
    try:
        for site in sites:
            started.start(site)
        started.wait()
        yield started
    finally:
        started.stop()


def reached(one: Site) -> str:
    """The address at which its neighbours reach the relay of a site."""
    return "10.72.0.1:4711" if one.name == "middle" else one.listen
