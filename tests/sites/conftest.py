"""Runs over several hosts: namespaces with a network, a host name, processes and an ssh server of their own."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ..conftest import TITIN, may_leave, needs

HERE = Path(__file__).parent
HOSTS = HERE / "hosts.sh"

#: A program that passes a number on, adds 1 to it, and prints the name of its host.
STAGE = """\
import os, sys
import titin

receives, sends = sys.argv[1] != "first", sys.argv[1] != "last"
with titin.Instance(f_init=["i"] * receives, o_f=["o"] * sends) as instance:
    while instance.reuse():
        number = int(instance.receive("i").data) if receives else 0
        if sends:
            instance.send("o", number + 1, timestamp=0.0)
    print(os.uname().nodename, number)
"""

Hosts = Callable[..., subprocess.CompletedProcess[str]]


def clock_off(hours: int, folder: Path) -> dict[str, str]:
    """The environment in which a process, and all that it starts, finds the clock off by some hours.

    The library that does so is compiled in the folder.
    """
    needs("cc")
    library = folder / "clock.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", HERE / "clock.c", "-o", library], check=True)
    return {"LD_PRELOAD": str(library), "CLOCK_OFF": str(3600 * hours)}


@pytest.fixture(scope="session")
def namespaces() -> None:
    needs("dropbear", "ssh", "ip")
    if not may_leave():
        pytest.skip("namespaces are for root")


@pytest.fixture
def hosts(namespaces: None, tmp_path: Path) -> Hosts:
    """Runs a command on the first of several hosts, in the test's folder; by default `titin run`."""

    def start(count: int, *command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        command = command or (TITIN, "run", "model.ymmsl", "--run-dir", "run")
        variables = [f"{name}={value}" for name, value in env.items()]
        return subprocess.run(
            ["env", *variables, HOSTS, str(count), *command],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )

    return start


def chain(folder: Path, names: Sequence[str], titin: str) -> None:
    """Writes a model in which these components pass a number on; ``titin`` is the section of that name."""
    (folder / "stage.py").write_text(STAGE)
    roles = ["first", *["middle"] * (len(names) - 2), "last"]
    ports = {"first": "o_f: o", "middle": "f_init: i, o_f: o", "last": "f_init: i"}
    lines = ["ymmsl_version: v0.2", "models:", "  chain:", "    components:"]
    for name, role in zip(names, roles, strict=True):
        lines.append(f"      {name}: {{description: x, ports: {{{ports[role]}}}, implementation: {role}}}")
    lines.append("    conduits:")
    lines += [f"      {one}.o: {other}.i" for one, other in itertools.pairwise(names)]
    lines.append("programs:")
    program = folder / "stage.py"
    lines += [
        f"  {role}: {{executable: {sys.executable}, args: [{program}, {role}], can_share_resources: false}}"
        for role in dict.fromkeys(roles)
    ]
    text = "\n".join(lines) + "\n" + (f"titin:\n{textwrap.indent(textwrap.dedent(titin), '  ')}\n" if titin else "")
    (folder / "model.ymmsl").write_text(text)


def printed(folder: Path, *names: str) -> list[str]:
    """What these instances have printed."""
    return [(folder / f"run/instances/{name}/stdout.txt").read_text().strip() for name in names]
