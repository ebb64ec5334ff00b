"""Files of a host at another site that shares no folder with the manager: they travel through relays, cuts or not.

The sites are those of examples/clusters: hosts with networks of their own, and nodes that reach only their cluster.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ..conftest import ROOT, WATCHDOG, may_leave, needs
from .conftest import wait_until

CLUSTERS = ROOT / "examples/clusters/clusters.sh"
SIZE = 12_000_000

#: Reads a staged file, writes the same bytes in reverse, and prints meanwhile.
WORKER = """\
import os, sys, time
from pathlib import Path
import titin

with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
    while instance.reuse():
        instance.receive("in")
        mesh = Path("mesh.dat").read_bytes()
        Path("deep").mkdir()
        Path("deep/reversed.dat").write_bytes(mesh[::-1])
        for line in range(40):
            print("line", line, "of", os.uname().nodename, flush=True)
            time.sleep(0.1)
        instance.send("out", len(mesh), timestamp=0.0)
"""

#: Begins, and prints what it is told at the end.
CLOCK = """\
import titin

with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        instance.send("out", 0, timestamp=0.0)
        print(instance.receive("in").data)
"""

MODEL = """\
ymmsl_version: v0.2
models:
  files:
    components:
      clock: {ports: {o_i: out, s: in}, implementation: clock}
      worker: {ports: {f_init: in, o_f: out}, implementation: worker}
    conduits: {clock.out: worker.in, worker.out: clock.in}
programs:
  clock: {executable: python3, args: [clock.py], base_env: login}
  worker: {executable: python3, args: [worker.py], base_env: login}
titin:
  sites: {south: {relay: "login:4710"}}
  hosts:
    localhost: {components: [clock]}
    n1.south: {site: south, components: [worker]}
  stage:
    clock: {in: [clock.py]}
    worker: {in: [worker.py, mesh.dat], out: [deep]}
"""

At = Callable[..., list[str | Path]]


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[At]:
    """The command that runs a command on one of the hosts. The relays of laptop, north and south run."""
    needs("dropbear", "ssh", "ip")
    if not may_leave():
        pytest.skip("namespaces are for root")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")

    def command(host: str, *words: str | Path) -> list[str | Path]:
        return [CLUSTERS, "at", host, *words]

    def relay(host: str, *words: str) -> str:
        done = subprocess.run(command(host, "titin", "relay", *words), check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def serves(host: str) -> bool:
        return (
            subprocess.run(command(host, "titin", "relay", "status"), capture_output=True, check=False).returncode == 0
        )

    daemons = []
    try:
        subprocess.run([CLUSTERS, "up"], check=True, timeout=60)
        relay("login.north", "init", "north", "--listen", "login.north:4711", "--local", "0.0.0.0:4710")
        relay("login.south", "init", "south", "--local", "0.0.0.0:4710")
        relay("laptop", "init", "laptop")
        for host, site, other in (("laptop", "laptop", "south"), ("login.south", "south", "laptop")):
            relay(host, "trust", "north", relay("login.north", "fingerprint"), "--address", "login.north:4711")
            relay(host, "trust", other, "--via", "north")
            relay("login.north", "trust", site, relay(host, "fingerprint"), "--transit")
        for host in ("login.north", "login.south", "laptop"):
            with (tmp_path / f"relay-{host}").open("w") as log:
                daemons.append(subprocess.Popen(command(host, "titin", "relay", "run"), stdout=log, stderr=log))
            wait_until(lambda host=host: serves(host), f"the relay of {host} does not answer")
        yield command
    finally:
        subprocess.run([CLUSTERS, "down"], check=True, timeout=60)
        for daemon in daemons:
            daemon.wait(timeout=60)


def cut(at: At, seconds: float) -> None:
    """Takes the line of south away for some time."""
    for state, pause in (("down", seconds), ("up", 0.0)):
        subprocess.run(at("login.south", "ip", "link", "set", "wan", state), check=True)
        time.sleep(pause)


def test_files_and_output_come_through_relays_although_the_line_is_cut(at: At, tmp_path: Path) -> None:
    def folders() -> list[Path]:
        return list((tmp_path / "temporary").glob("titin-run-*"))

    mesh = os.urandom(SIZE)
    Path("mesh.dat").write_bytes(mesh)
    Path("worker.py").write_text(WORKER)
    Path("clock.py").write_text(CLOCK)
    Path("model.ymmsl").write_text(MODEL)
    words = ("titin", "run", "model.ymmsl", "--run-dir", "run")
    run = subprocess.Popen(at("laptop", *words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = Path("run/instances/worker/stdout.txt")
    # While the mesh travels, while the program prints, and while its file comes back.
    wait_until(Path("run/agents/n1.south.txt").exists, "the agent of n1.south is not started", 60)
    time.sleep(1)
    cut(at, 1)
    wait_until(lambda: output.exists() and output.read_text(), "the worker prints nothing", 60)
    assert folders(), "the agent has a folder of its own"
    follower = subprocess.Popen(
        at("laptop", "titin", "logs", "run", "worker", "--follow"), stdout=subprocess.PIPE, text=True
    )
    cut(at, 1)
    wait_until(lambda: "line 39" in output.read_text(), "the worker does not print its last line", 60)
    cut(at, 1)

    said, _ = run.communicate(timeout=WATCHDOG)
    assert run.returncode == 0, said
    lines = [f"line {line} of n1.south" for line in range(40)]
    assert output.read_text().splitlines() == lines
    assert follower.communicate(timeout=60)[0].splitlines() == lines
    assert Path("run/instances/clock/stdout.txt").read_text().split() == [str(SIZE)]
    for found in Path("run/results").rglob("reversed.dat"), Path("run/instances").rglob("reversed.dat"):
        (file,) = found
        assert hashlib.sha256(file.read_bytes()[::-1]).digest() == hashlib.sha256(mesh).digest()
    assert not folders(), "the agent leaves its folder"
