"""Programs whose ranks are on several hosts: the nodes of a Slurm cluster, as `cluster.sh` makes one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ..conftest import needs
from .conftest import HERE, Build, run
from .test_fields import model as fields
from .test_ranks import model, started

CLUSTER = HERE / "cluster.sh"


def may_leave() -> bool:
    """Whether this user may make networks."""
    needs("slurmctld", "munged", "ip")
    return subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_leave(), reason="namespaces are for root")

#: Each task finds the others by what Slurm has for its MPI.
OPENMPI = "srunmpi, env: {SLURM_MPI_TYPE: pmix}"
MPICH = "srunmpi, env: {SLURM_MPI_TYPE: pmi2}"


@pytest.mark.usefixtures("python")
def test_fields_go_between_the_ranks_of_several_hosts(build: Build, tmp_path: Path) -> None:
    text = fields(4, 2, build("adds", "c", "mpich"), 2, "")
    text = text.replace("execution_model: mpich", f"execution_model: {MPICH}")
    text = text.replace("execution_model: openmpi", f"execution_model: {OPENMPI}", 1)
    for ranks, nodes in ((4, 2), (2, 2), (2, 1)):
        by_node = f"{{nodes: {nodes}, mpi_processes_per_node: {ranks // nodes}}}"
        text = text.replace(f"{{mpi_processes: {ranks}}}", by_node, 1)
    done = run(tmp_path, text, CLUSTER)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mpi", ["openmpi", "intelmpi"])
def test_the_launcher_of_an_mpi_uses_all_that_slurm_has_given(build: Build, tmp_path: Path, mpi: str) -> None:
    peers = {"a": (started(build("sums", "c", mpi), mpi), 4), "b": (started(build("sums", "c", mpi), mpi), 2)}
    text = model(peers).replace("{mpi_processes: 4}", "{nodes: 2, mpi_processes_per_node: 2}")
    done = run(tmp_path, text, CLUSTER)
    assert done.returncode == 0, done.stdout
    assert "with 4 ranks" in done.stdout


@pytest.mark.parametrize("rank", [0, 3])
def test_the_death_of_a_rank_on_another_host_ends_the_run(build: Build, tmp_path: Path, rank: int) -> None:
    text = model({"a": (started(build("sums", "c", "openmpi"), OPENMPI, rank, "kill"), 4)})
    done = run(tmp_path, text.replace("{mpi_processes: 4}", "{nodes: 2, mpi_processes_per_node: 2}"), CLUSTER)
    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    assert re.search(rf"First: +a .*rank {rank} \(process \d+", told), done.stdout
    assert "driver: the run has failed because of a" in told, done.stdout
