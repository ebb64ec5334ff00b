"""One run over several hosts: agents by ssh and by hand, placement, and hosts that are late or refused.

For agents by hand with a token see `test_tokens.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from ..conftest import TITIN, needs
from .conftest import Hosts, chain, printed

THREE = "hosts: {localhost: {cores: 1}, n2: {cores: 1}, n3: {cores: 1}}"


def test_programs_go_where_cores_are_free(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b", "c"], THREE)
    done = hosts(3)
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b", "c") == ["n1 0", "n2 1", "n3 2"]
    with sqlite3.connect(tmp_path / "run/performance.sqlite") as profile:
        cores = profile.execute("SELECT node, core FROM assigned_cores ORDER BY instance_oid").fetchall()
    assert [node for node, _ in cores] == ["n1", "n2", "n3"]
    assert "host n2 is ready" in done.stdout


def test_cores_that_a_host_does_not_have_are_said(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {localhost: {cores: 1}, n2: {cores: 4096}}")
    done = hosts(2)
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert re.search(r"WARNING manager host n2 has \d+ of the 4096 cores of its entry under `titin: hosts`", said), said
    assert said.count("cores of its entry") == 1, said


def test_a_component_may_be_pinned_to_a_host(hosts: Hosts, tmp_path: Path) -> None:
    chain(
        tmp_path,
        ["a", "b", "c"],
        "hosts: {localhost: {components: [c]}, second: {address: root@n2, components: [a, b]}}",
    )
    done = hosts(2)
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b", "c") == ["n2 0", "n2 1", "n1 2"]


def test_a_plan_says_where_each_program_goes(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b", "c"], THREE)
    done = hosts(1, TITIN, "run", "model.ymmsl", "--plan")
    rows = [line.split()[:2] for line in done.stdout.splitlines()[1:]]
    assert rows == [["a", "localhost"], ["b", "n2"], ["c", "n3"]], done.stdout
    # Each needs a core of its own, and the hosts have one.
    reasons = ["first of equal hosts", "most free cores", "most free cores"]
    for reason, line in zip(reasons, done.stdout.splitlines()[1:], strict=True):
        assert line.rstrip().endswith(reason), done.stdout
    done = hosts(1, TITIN, "run", "model.ymmsl", "--plan", "--json")
    assert [placed["reason"] for placed in json.loads(done.stdout)] == reasons


def test_only_agents_of_the_run_are_let_in(hosts: Hosts, tmp_path: Path) -> None:
    """A wrong name, an agent without the secret, and no input at all. The run goes on, with all of its folders."""
    chain(tmp_path, ["a", "b"], "hosts: {n2: {start: by hand, components: [b]}}\nmedium: {b.i: file}")
    connection = "run/connection.json"
    (tmp_path / "by_hand.sh").write_text(
        f"{TITIN} run model.ymmsl --run-dir run >said 2>&1 & until [ -e {connection} ]; do sleep 0.05; done\n"
        f"{TITIN} agent --host n3 {connection}\n"
        f"""sed 's/"secret": "[0-9a-f]*"/"secret": "{"0" * 64}"/' {connection} >other.json\n"""
        f"{TITIN} agent --host n2 other.json\n"
        f"{TITIN} agent --host n2 nothing.json\n"
        f"echo nonsense | {TITIN} agent --host n2\n"
        f"ssh n2 {TITIN} agent --host n2 {tmp_path}/{connection}; wait $!; code=$?; cat said; exit $code\n"
    )
    done = hosts(2, "sh", "by_hand.sh")
    assert done.returncode == 0, done.stdout
    said = " ".join(done.stdout.split())
    assert "the manager does not let this agent in: the run has no host n3; it has" in said
    assert "does not know this run's secret" in said
    assert "cannot read nothing.json: No such file" in said
    assert "standard input is not what the manager of a run writes" in said


def test_a_host_that_cannot_be_reached_is_named_with_what_ssh_says(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {n2: {}, elsewhere: {address: n9}}")
    done = hosts(2)
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert "First: the agent of host elsewhere could not be started: ssh: Could not resolve hostname n9" in said
    assert re.search("ssh -T -o BatchMode=yes -o ControlMaster=no n9 .* ended with exit code 255", said), said


def test_a_host_that_is_late_is_named(hosts: Hosts, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {n2: {start: by hand}, n3: {}}\nregister_timeout: 1.5 s")
    done = hosts(3)
    assert done.returncode == 1, done.stdout
    assert "First: host n2 has no agent after 1.5 s" in " ".join(done.stdout.split())
    assert "a: was not started any more" in " ".join(done.stdout.split()), done.stdout


@pytest.mark.parametrize(
    ("start", "state"),
    [
        ("[sh, -c, 'exec sleep 60', sh]", "sh -c 'exec sleep 60' .* goes on, and has printed nothing"),
        ("['true']", "true .* has ended, and has printed nothing"),
        ("[sh, -c, 'echo no way; exec sleep 60', sh]", "its last words: no way"),
    ],
    ids=["hangs", "ends", "says"],
)
def test_the_page_says_what_is_known_of_an_agent_that_does_not_come(
    hosts: Hosts, tmp_path: Path, start: str, state: str
) -> None:
    chain(tmp_path, ["a", "b"], f"hosts: {{n2: {{start: {start}}}}}\nregister_timeout: 1.5 s")
    done = hosts(2)
    assert done.returncode == 1, done.stdout
    said = " ".join(done.stdout.split())
    assert re.search(f"Waiting: titin waited for the agent of host n2; {state}", said), said


def test_a_launcher_of_the_users_own(hosts: Hosts, tmp_path: Path) -> None:
    chain(
        tmp_path,
        ["a", "b"],
        "hosts: {localhost: {components: [a]}, n2: {start: [nsenter, --all, --target, PID], components: [b]}}",
    )
    (tmp_path / "own.sh").write_text(
        "sed -i s/PID/$(pgrep -of '^dropbear.*n2[.]pid')/ model.ymmsl\n"
        + f"exec {TITIN} run model.ymmsl --run-dir run\n"
    )
    done = hosts(2, "sh", "own.sh")
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]


@pytest.mark.parametrize("launcher", ["mpirun", "mpiexec.hydra"])
@pytest.mark.parametrize("how", ["well", "fails"])
def test_agents_by_the_launchers_of_mpi(hosts: Hosts, tmp_path: Path, launcher: str, how: str) -> None:
    """Open MPI's mpirun and MPICH's mpiexec.hydra start an agent on a host that they reach by ssh."""
    needs("mpirun.openmpi", "mpiexec.hydra")
    (tmp_path / "mpirun").symlink_to(shutil.which("mpirun.openmpi") or "")
    chain(
        tmp_path, ["a", "b"], f"hosts: {{localhost: {{components: [a]}}, n2: {{start: {launcher}, components: [b]}}}}"
    )
    if how == "fails":
        stage = tmp_path / "stage.py"
        stage.write_text(stage.read_text() + "    if not sends: os.kill(os.getpid(), 9)\n")
    done = hosts(2, PATH=f"{tmp_path}:{os.environ['PATH']}")
    if how == "well":
        assert done.returncode == 0, done.stdout
        assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]
    else:
        assert done.returncode == 1, done.stdout
        assert "First: b on host n2 was ended by SIGKILL" in " ".join(done.stdout.split())


#: Ranks of one program on another host add up a number and pass it on.
RANKS = """\
import os, sys, time
from mpi4py import MPI
import titin

world = MPI.COMM_WORLD
with titin.Instance(f_init=["i"], o_f=["o"], comm=world) as instance:
    while instance.reuse():
        number = int(instance.receive("i").data) * world.size + world.allreduce(world.rank)
        if sys.argv[1] == "fail" and world.rank == 1:
            os.kill(os.getpid(), 9)
        instance.send("o", number, timestamp=0.0)
    print(os.uname().nodename, world.size)
"""


def ranks(folder: Path, how: str) -> None:
    """Writes a chain whose middle is a program of three ranks on n2."""
    chain(folder, ["a", "b", "c"], "hosts: {localhost: {components: [a, c]}, n2: {components: [b]}}")
    (folder / "ranks.py").write_text(RANKS)
    model = folder / "model.ymmsl"
    # Agents that ssh has started do not have the environment of the tests.
    env = 'env: {OMPI_ALLOW_RUN_AS_ROOT: "1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1"}'
    program = f"ranks.py, {how}], execution_model: openmpi, {env}"
    text = model.read_text().replace("stage.py, middle]", program)
    model.write_text(text + "resources: {chain.b: {mpi_processes: 3}}\n")


def test_ranks_go_to_a_host_with_their_launcher(hosts: Hosts, tmp_path: Path) -> None:
    needs("mpirun.openmpi")
    ranks(tmp_path, "well")
    done = hosts(2)
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "a", "b", "c") == ["n1 0", "n2 3\nn2 3\nn2 3", "n1 6"]


def test_a_killed_rank_on_a_host_is_named(hosts: Hosts, tmp_path: Path) -> None:
    needs("mpirun.openmpi")
    ranks(tmp_path, "fail")
    done = hosts(2)
    assert done.returncode == 1, done.stdout
    assert "rank 1" in done.stdout and "First:    b" in done.stdout, done.stdout


def test_a_plan_may_follow_an_earlier_run(hosts: Hosts, tmp_path: Path) -> None:
    """The instance in the middle goes to the host to which most of its bytes went."""
    chain(tmp_path, ["a", "b", "c"], "hosts: {localhost: {components: [a]}, n2: {components: [c], cores: 8}}")
    stage = tmp_path / "stage.py"
    stage.write_text(
        stage.read_text().replace('"o", number + 1,', '"o", number + 1 if sys.argv[1] == "first" else [7] * 99,')
    )
    stage.write_text(stage.read_text().replace('int(instance.receive("i").data)', 'instance.receive("i").data'))
    done = hosts(2)
    assert done.returncode == 0, done.stdout
    assert printed(tmp_path, "b") == ["n1 1"]
    for earlier, host in [("run", "n2"), ("run/performance.sqlite", "n2"), ("", "localhost")]:
        choice = [f"--profile={earlier}"] if earlier else []
        done = hosts(1, TITIN, "run", "model.ymmsl", "--plan", "--json", *choice)
        placed = json.loads(done.stdout)
        assert [one["host"] for one in placed] == ["localhost", host, "n2"]
        first, middle, last = (one["reason"] for one in placed)
        assert (first, last) == ("named by components", "named by components")
        assert re.fullmatch(r"near c \([1-9]\d+ bytes\)" if earlier else r"first of equal hosts", middle), middle
    done = hosts(1, TITIN, "run", "model.ymmsl", "--profile", "nothing")
    assert done.returncode == 2, done.stdout
    assert "--profile: there is no profile nothing" in done.stdout
