"""Hosts with two networks: which one serves can be chosen, and the profile and the log say it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..conftest import ROOT, TITIN, config, needs
from ..relays.test_programs import FIELD
from .conftest import Hosts, chain, printed

#: The addresses of the two hosts in each network.
FIRST, SECOND = (["10.70.0.1", "10.70.0.2"], ["10.71.0.1", "10.71.0.2"])

#: What programs find in the connection file: the addresses of the manager.
MANAGER = """\
import json, os
print(*json.load(open(os.environ["TITIN_MANAGER"]))["addresses"])
"""

#: The main example in C, with one part on each host.
EXAMPLE = """\
ymmsl_version: v0.2
programs:
  macro: {{executable: {folder}/macro}}
  micro: {{executable: {folder}/micro}}
settings: {{macro.t_max: 1.0}}
titin:
  hosts:
    localhost: {{network: second, components: [macro, result]}}
    n2: {{network: eth1, components: [micro]}}
"""


#: Lets Open MPI start programs of root, also by ssh.
ROOT_MAY = '{OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1"}'

#: Two ranks on one host send a field to two ranks on the other host, and back.
RANKS = """\
ymmsl_version: v0.2
models:
  fields:
    components:
      a: {{description: here, ports: {{o_i: there, s: back}}, implementation: a}}
      b: {{description: there, ports: {{o_i: back, s: there}}, implementation: b}}
    conduits: {{a.there: b.there, b.back: a.back}}
programs:
  a: {{executable: {python}, args: [{folder}/field.py, a, blocks, "5", "0"], execution_model: openmpi, env: {root}}}
  b: {{executable: {python}, args: [{folder}/field.py, b, blocks, "5", "0"], execution_model: openmpi, env: {root}}}
resources:
  fields.a: {{mpi_processes: 2}}
  fields.b: {{mpi_processes: 2}}
titin:
  hosts:
    localhost: {{network: second, components: [a]}}
    n2: {{network: eth1, components: [b]}}
"""


def conduits(folder: Path) -> list[dict[str, Any]]:
    """The conduits in the profile of the run."""
    command = [TITIN, "profile", folder / "run", "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows: list[dict[str, Any]] = json.loads(found)["conduits"]
    return rows


@pytest.mark.parametrize(
    ("here", "there", "serves"),
    [
        ("", "", FIRST),
        ("network: second, ", "network: eth1, ", SECOND),
        ("network: 10.71.0.0/24, ", "network: 10.71.0.0/24, ", SECOND),
        ("network: 10.70.0.1, ", "network: eth0, ", FIRST),
    ],
)
def test_the_chosen_network_serves(hosts: Hosts, tmp_path: Path, here: str, there: str, serves: list[str]) -> None:
    chain(
        tmp_path,
        ["a", "b"],
        f"hosts: {{localhost: {{{here}components: [a]}}, n2: {{{there}components: [b]}}}}",
    )
    stage = tmp_path / "stage.py"
    stage.write_text(MANAGER + stage.read_text())
    done = hosts(2, SECOND="1")
    assert done.returncode == 0, done.stdout
    (manager, said), (same, also) = (text.splitlines() for text in printed(tmp_path, "a", "b"))
    assert (said, also) == ("n1 0", "n2 1")
    # The manager is reached by the chosen network alone, and by both without a choice.
    expected = [serves] if here else [FIRST, SECOND]
    assert manager == same
    assert [address.rsplit(":", 1)[0] for address in manager.split()] == [f"tcp:{pair[0]}" for pair in expected]
    (conduit,) = conduits(tmp_path)
    assert (conduit["medium"], conduit["addresses"]) == ("tcp", serves)
    table = subprocess.run([TITIN, "profile", "run"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert " - ".join(serves) in table
    log = (tmp_path / "run/titin_manager.log").read_text()
    assert f"is connected to b by tcp: {serves[0]} - {serves[1]}" in log or (
        f"is connected to a by tcp: {serves[1]} - {serves[0]}" in log
    ), log


def test_the_chosen_network_serves_programs_in_c(hosts: Hosts, tmp_path: Path) -> None:
    needs("cc")
    folder = ROOT / "examples/reaction-diffusion"
    for name in ("macro", "micro"):
        source = folder / f"c/{name}.c"
        subprocess.run(["cc", *config("--cflags"), source, "-o", tmp_path / name, *config("--libs"), "-lm"], check=True)
    (tmp_path / "parts.ymmsl").write_text(EXAMPLE.format(folder=tmp_path))
    done = hosts(2, TITIN, "run", folder / "model.ymmsl", "parts.ymmsl", "--run-dir", "run", SECOND="1")
    assert done.returncode == 0, done.stdout
    found = {conduit["from"]: conduit["addresses"] for conduit in conduits(tmp_path)}
    # Within a host nothing goes by tcp.
    expected = {"macro.state_out": SECOND, "micro.final_state": SECOND[::-1], "macro.final_state": None}
    assert found == expected


def test_the_chosen_network_serves_all_ranks(hosts: Hosts, tmp_path: Path) -> None:
    """The system's own counters say by which network the parts of a field have come."""
    pytest.importorskip("mpi4py")
    needs("mpirun.openmpi")
    (tmp_path / "field.py").write_text(FIELD)
    (tmp_path / "model.ymmsl").write_text(RANKS.format(python=sys.executable, folder=tmp_path, root=ROOT_MAY))
    done = hosts(2, "sh", "-c", f"{TITIN} run model.ymmsl --run-dir run && cat /proc/net/dev >counters", SECOND="1")
    assert done.returncode == 0, done.stdout
    lines = [line.split() for line in (tmp_path / "counters").read_text().splitlines()]
    received = {name.rstrip(":"): int(count) for name, count, *_ in lines if name.endswith(":")}
    first, second = received["lan"], received["second"]
    # Five fields of 50,000 doubles come back from the other host.
    assert second > 5 * 50_000 * 8 and first < second / 4, (first, second)


def test_a_network_that_a_host_does_not_have_is_named_with_those_that_it_has(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {n2: {network: eth7, components: [b]}}")
    done = hosts(2, SECOND="1")
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert (
        "First: the agent of host n2 finds that its host has no network eth7 that is up and has an IPv4 address; "
        "it has lo (127.0.0.1/8), eth0 (10.70.0.2/24), eth1 (10.71.0.2/24) (`network` under `titin: hosts`)" in said
    ), said


def test_a_network_that_the_managers_host_does_not_have_is_named(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {localhost: {network: 10.72.0.0/16}}")
    done = hosts(1)
    assert done.returncode != 0, done.stdout
    said = " ".join(done.stdout.split())
    assert (
        "this host has no network 10.72.0.0/16 that is up and has an IPv4 address; it has lo (127.0.0.1/8)" in said
    ), said


def test_the_loopback_serves_no_other_host(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {localhost: {components: [a]}, n2: {network: lo, components: [b]}}")
    done = hosts(2)
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert "First: the agent of host n2 finds that no other host reaches its host by lo, the loopback network" in said
    assert "Correct it there, or the host's entry under `titin: hosts`" in said
    # The manager of a run whose own network is the loopback cannot be reached either.
    chain(tmp_path, ["a", "b"], "hosts: {localhost: {network: lo}, n2: {}}\nregister_timeout: 4 s")
    done = hosts(2, TITIN, "run", "model.ymmsl", "--run-dir", "again")
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert "The manager listens on the loopback network of its host alone: does `network` of localhost" in said, said
