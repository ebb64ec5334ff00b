"""Runs in Slurm jobs of three nodes: examples, jobs of several parts, and many programs at once."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ..conftest import ROOT, TITIN, needs
from .conftest import HERE, chain, printed
from .test_hosts import RANKS

CLUSTER = HERE / "cluster.sh"
EXAMPLES = ROOT / "examples"
NODES = ["n1", "n2", "n3"]
CORES = len(os.sched_getaffinity(0))

Cluster = Callable[..., str]


@pytest.fixture
def cluster(namespaces: None, tmp_path: Path) -> Cluster:
    """Runs a command on the first of three nodes, in the test's folder, and returns what it has printed."""
    needs("slurmctld", "munged")

    def start(*command: str | Path) -> str:
        done = subprocess.run(
            [CLUSTER, str(len(NODES)), *command],
            cwd=tmp_path,
            # PSI/J keeps its own files in the home directory.
            env=os.environ | {"HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return start


def hosts_of(run: Path) -> dict[str, str]:
    """The host of each instance of a run, by the profile."""
    with sqlite3.connect(run / "performance.sqlite") as profile:
        rows = profile.execute(
            "SELECT DISTINCT name, node FROM assigned_cores JOIN instances ON instance_oid = instances.oid"
        ).fetchall()
    hosts = dict(rows)
    assert len(hosts) == len(rows), "an instance is on two hosts"
    return hosts


def media_of(run: Path) -> dict[tuple[str, str], str]:
    """The medium of each conduit of a run, by the instances at its ends."""
    told = subprocess.run([TITIN, "profile", run, "--json"], capture_output=True, text=True, check=True).stdout
    conduits = json.loads(told)["conduits"]
    return {tuple(conduit[end].split(".")[0] for end in ("from", "to")): conduit["medium"] for conduit in conduits}


def run_on_one_host(folder: Path, files: list[Path]) -> Path:
    """Runs a model on this host, and returns the run directory."""
    run = folder / "on-one-host"
    subprocess.run([TITIN, "run", *files, "--run-dir", run], cwd=folder, check=True, capture_output=True)
    return run


def test_a_macro_and_a_micro_model_and_a_sink_are_on_three_nodes(cluster: Cluster, tmp_path: Path) -> None:
    """A batch job. The description says which of the three is on which node, and no two share one."""
    example = EXAMPLES / "reaction-diffusion"
    files = [example / file for file in ("model.ymmsl", "python/macro.ymmsl", "python/micro.ymmsl")]
    (tmp_path / "hosts.ymmsl").write_text(
        "ymmsl_version: v0.2\ntitin: {hosts: {localhost: {components: [macro]},"
        " n2: {start: srun, components: [micro]}, n3: {start: srun, components: [result]}}}\n"
    )
    job = ["--submit", "slurm", "--time", "10 min", "--nodes", "3", "--cores-per-node", "1", "--wait"]
    said = cluster(TITIN, "run", *files, "hosts.ymmsl", "--run-dir", "run", *job)
    assert re.search(r"submitted to slurm as job \d+", said)

    run = tmp_path / "run"
    assert hosts_of(run) == {"macro": "n1", "micro": "n2", "result": "n3"}
    ends = [("macro", "micro"), ("micro", "macro"), ("macro", "result")]
    assert media_of(run) == dict.fromkeys(ends, "tcp")
    kept = "instances/result/workdir/final_state.npy"
    assert (run / kept).read_bytes() == (run_on_one_host(tmp_path, files) / kept).read_bytes()


def test_the_members_of_an_ensemble_are_on_three_nodes(cluster: Cluster, tmp_path: Path) -> None:
    """Nothing says which instance is on which node. The driver and the members want all cores of a node each."""
    pair = tmp_path / "pair"
    shutil.copytree(EXAMPLES / "reaction-diffusion", pair, ignore=shutil.ignore_patterns("build"))
    subprocess.run(["make", "-s", "build/c/micro"], cwd=pair, check=True)
    model = EXAMPLES / "ensemble/ensemble.ymmsl"
    (tmp_path / "whole_nodes.ymmsl").write_text(
        f"ymmsl_version: v0.2\nprograms: {{micro: {{executable: {pair}/build/c/micro, can_share_resources: false}}}}\n"
        f"resources: {{ensemble.driver: {{threads: {CORES}}}, ensemble.micro: {{threads: {CORES}}}}}\n"
    )
    run = tmp_path / "run"
    said = cluster("salloc", "--quiet", "--nodes=3", TITIN, "run", model, "whole_nodes.ymmsl", "--run-dir", run)
    assert "host n2 is ready" in said and "host n3 is ready" in said

    hosts = hosts_of(run)
    assert [hosts[name] for name in ("driver", "micro[0]", "micro[1]")] == NODES
    assert len(hosts) == 12
    for (one, other), medium in media_of(run).items():
        assert (medium == "tcp") == (hosts[one] != hosts[other])
    kept = "instances/result/workdir/statistics.npy"
    one_host = run_on_one_host(tmp_path, [model, pair / "c/micro.ymmsl"])
    assert (run / kept).read_bytes() == (one_host / kept).read_bytes()


#: A job of three parts, each of one node.
JOB = """\
#!/bin/sh
#SBATCH --nodelist=n1
#SBATCH hetjob
#SBATCH --nodelist=n2
#SBATCH hetjob
#SBATCH --nodelist=n3
exec titin run model.ymmsl --run-dir run
"""

#: The commands for a job of several parts, and the parts whose agents the run starts.
JOBS = {
    "the-manager-is-in-the-first": (["salloc", "--quiet", "-wn1", ":", "-wn2,n3"], [1]),
    "the-manager-is-in-the-last": (["salloc", "--quiet", "-wn2", ":", "-wn1,n3"], [0, 1]),
    "a-batch-job": (["sbatch", "--wait", "--output=said", "job.sh"], [1, 2]),
}

RUN = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]


@pytest.mark.parametrize(("command", "parts"), JOBS.values(), ids=JOBS)
def test_a_job_of_several_parts_uses_the_nodes_of_all(
    cluster: Cluster, tmp_path: Path, command: list[str], parts: list[int]
) -> None:
    chain(tmp_path, ["a", "b", "c"], "")
    model = tmp_path / "model.ymmsl"
    wanted = ", ".join(f"chain.{name}: {{threads: {CORES}}}" for name in "abc")
    model.write_text(model.read_text() + f"resources: {{{wanted}}}\n")
    (tmp_path / "job.sh").write_text(JOB)
    cluster(*command, *(RUN if command[0] == "salloc" else []))
    assert printed(tmp_path, "a", "b", "c") == ["n1 0", "n2 1", "n3 2"]
    # The agents of each part are started by a command of their own.
    log = (tmp_path / "run/titin_manager.log").read_text()
    assert re.findall(r"srun [^;\n]*--het-group=(\d)", log) == [str(part) for part in parts], log


def test_srun_as_an_executable_reaches_another_part(cluster: Cluster, tmp_path: Path) -> None:
    chain(tmp_path, ["a", "b"], "hosts: {localhost: {}}")
    model = tmp_path / "model.ymmsl"
    srun = f"--het-group=1, --overlap, --cpu-bind=none, --nodes=1, --ntasks=1, {sys.executable}"
    last = f"last: {{executable: {sys.executable}, args: ["
    assert last in model.read_text()
    model.write_text(model.read_text().replace(last, f"last: {{executable: srun, args: [{srun}, "))
    cluster("salloc", "--quiet", "-wn1", ":", "-wn2", *RUN)
    assert printed(tmp_path, "a", "b") == ["n1 0", "n2 1"]


def test_the_ranks_of_a_program_are_in_several_parts(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("mpirun.openmpi")
    monkeypatch.setenv("CLUSTER_SECONDS", "60")
    chain(tmp_path, ["a", "b", "c"], "")
    (tmp_path / "ranks.py").write_text(RANKS)
    model = tmp_path / "model.ymmsl"
    ranks = "ranks.py, well], execution_model: srunmpi, env: {SLURM_MPI_TYPE: pmix}"
    text = model.read_text().replace("stage.py, middle]", ranks)
    model.write_text(text + "resources: {chain.b: {nodes: 3, mpi_processes_per_node: 1}}\n")
    for is_last in [False, False, True]:
        try:
            cluster("salloc", "--quiet", "-wn1", ":", "-wn2,n3", *RUN)
            break
        except AssertionError:
            # Of some twenty such steps one srun of Slurm 22.05 never ends, although all ranks have: its threads for the
            # two parts of the job wait for one and the same thread (pmixp_abort_agent_stop).
            log = (tmp_path / "run/titin_manager.log").read_text()
            if is_last or not re.search(r" b +done$", log, re.MULTILINE):
                raise
            shutil.rmtree(tmp_path / "run")
    (places,) = printed(tmp_path, "b")
    assert sorted(places.splitlines()) == ["n1 3", "n2 3", "n3 3"]


#: Starts a run so many times, one after the other.
STARTS = f"""\
for number in $(seq "$1"); do
	{TITIN} run build/ring.ymmsl hosts.ymmsl --run-dir "run-$number" || exit
done
"""


@pytest.mark.timeout(3600)
def test_fifty_components_start_over_three_nodes_every_time(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring of the examples, with fifty cells. Each neighbour of a cell is on another node.

    The ring starts as often as the environment variable ``TITIN_SOAK_STARTS`` says.
    """
    starts = int(os.environ.get("TITIN_SOAK_STARTS", "2"))
    monkeypatch.setenv("CLUSTER_SECONDS", "3000")
    for file in ("ring.py", "cell.c", "Makefile"):
        shutil.copy(EXAMPLES / "ring" / file, tmp_path)
    program = tmp_path / "ring.py"
    program.write_text(program.read_text().replace("= 100, 3,", "= 50, 3,"))
    subprocess.run(["make", "-s"], cwd=tmp_path, check=True)
    nodes = {f"cell_{i}": NODES[i % 3] if i < 49 else "n2" for i in range(50)}
    hosts = ["localhost: {", "n2: {start: srun, ", "n3: {start: srun, "]
    for at, node in enumerate(NODES):
        hosts[at] += f"components: [{', '.join(cell for cell, its in nodes.items() if its == node)}]}}"
    (tmp_path / "hosts.ymmsl").write_text(f"ymmsl_version: v0.2\ntitin: {{hosts: {{{', '.join(hosts)}}}}}\n")
    (tmp_path / "starts.sh").write_text(STARTS)
    said = cluster("salloc", "--quiet", "--nodes=3", "sh", "starts.sh", str(starts))
    seconds = [float(found) for found in re.findall(r"^ring: done in (\S+) s", said, re.MULTILINE)]
    assert len(seconds) == starts, said
    print(f"{starts} starts, in {min(seconds)} to {max(seconds)} s")

    ring = runpy.run_path(str(program))
    begin = np.array([ring["start"](i) for i in range(50)])
    shrinks = 1 - 2 * ring["A"] * (1 - np.cos(2 * np.pi * ring["WAVES"] / 50))
    for number in range(1, starts + 1):
        run = tmp_path / f"run-{number}"
        assert hosts_of(run) == nodes
        assert set(media_of(run).values()) == {"tcp"}
        ends = [float((run / f"instances/{cell}/stdout.txt").read_text()) for cell in nodes]
        np.testing.assert_allclose(ends, begin * shrinks ** ring["STEPS"], rtol=0, atol=1e-12)
