"""Programs whose ranks are on several hosts: the nodes of a Slurm cluster, as `cluster.sh` makes one."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from ..conftest import may_leave, needs
from .conftest import HERE, MPIS, Build, pair, run
from .test_fields import model as fields
from .test_ranks import model, started

CLUSTER = HERE / "cluster.sh"


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    needs("slurmctld", "munged", "ip")
    if not may_leave():
        pytest.skip("namespaces are for root")


#: The tasks find each other by the PMI that Slurm offers for each MPI.
OPENMPI = "srunmpi, env: {SLURM_MPI_TYPE: pmix}"
MPICH = "srunmpi, env: {SLURM_MPI_TYPE: pmi2}"


def started_by(launcher: str, text: str, instead: str = "openmpi") -> str:
    """The same model, in which the first program with the launcher `instead` gets this launcher."""
    before = f"execution_model: {instead}"
    assert before in text
    return text.replace(before, f"execution_model: {launcher}", 1)


def on(nodes: int, ranks: int, text: str) -> str:
    """The same model, in which the first instance with `ranks` ranks is on `nodes` nodes."""
    before = f"{{mpi_processes: {ranks}}}"
    assert before in text
    return text.replace(before, f"{{nodes: {nodes}, mpi_processes_per_node: {ranks // nodes}}}", 1)


@pytest.mark.usefixtures("python")
def test_fields_go_between_the_ranks_of_several_hosts(build: Build, tmp_path: Path) -> None:
    text = on(1, 2, on(2, 2, on(2, 4, fields(4, 2, build("adds", "c", "mpich"), 2, ""))))
    done = run(tmp_path, started_by(OPENMPI, started_by(MPICH, text, "mpich")), CLUSTER)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mpi", [mpi for mpi in MPIS if mpi != "mpich"])
def test_the_launcher_of_an_mpi_uses_all_that_slurm_has_given(build: Build, tmp_path: Path, mpi: str) -> None:
    peers = {"a": (started(build("sums", "c", mpi), mpi), 4), "b": (started(build("sums", "c", mpi), mpi), 2)}
    done = run(tmp_path, on(2, 4, model(peers)), CLUSTER)
    if mpi == "intelmpi" and re.search(r"signal 11.*libmpi\.so.*MPI_Init", done.stdout, re.DOTALL):
        # Intel MPI 2021.19 rarely crashes in its own MPI_Init, before titin is called: seen once in some 700 starts.
        shutil.rmtree(tmp_path / "run")
        done = run(tmp_path, on(2, 4, model(peers)), CLUSTER)
    assert done.returncode == 0, done.stdout
    assert "with 4 ranks" in done.stdout


@pytest.mark.parametrize("rank", [0, 3])
def test_the_death_of_a_rank_on_another_host_ends_the_run(build: Build, tmp_path: Path, rank: int) -> None:
    text = model({"a": (started(build("sums", "c", "openmpi"), OPENMPI, rank, "kill"), 4)})
    done = run(tmp_path, on(2, 4, text), CLUSTER)
    assert done.returncode == 1
    told = " ".join(done.stdout.split())
    # Slurm ends the other ranks at once, which may be faster than the news of the first rank.
    assert re.search(r"First: +a .*rank \d \(process \d+", told), done.stdout
    assert "driver: the run has failed because of a" in told, done.stdout


WHERE = """\
import os, sys
import titin

ports = {"o_f": ["u"]} if sys.argv[1] == "a" else {"f_init": ["u"]}
with titin.Instance(**ports) as instance:
    while instance.reuse():
        instance.send("u", 1, timestamp=0.0) if sys.argv[1] == "a" else instance.receive("u")
    print(os.uname().nodename)
"""


def where(folder: Path, programs: list[tuple[object, ...]], rest: str = "") -> str:
    """A model in which ``a`` sends to ``b``, and both print the names of their hosts."""
    (folder / "where.py").write_text(WHERE)
    text = pair(("o_f: u", "f_init: u"), "a.u: b.u", programs)
    return text.replace("    matching_timelines: {a: [b]}\n", "") + rest


def hosts_of(folder: Path) -> list[str]:
    """What the two have printed."""
    return [(folder / f"run/instances/{name}/stdout.txt").read_text().strip() for name in "ab"]


def test_serial_programs_go_to_the_nodes_with_free_cores(tmp_path: Path) -> None:
    program = [sys.executable, tmp_path / "where.py"]
    cores = len(os.sched_getaffinity(0))
    text = where(tmp_path, [(*program, "a"), (*program, "b")])
    text = text.replace("{threads: 1}", f"{{threads: {cores}}}").replace(
        "{executable:", "{can_share_resources: false, executable:"
    )
    done = run(tmp_path, text, CLUSTER)
    assert done.returncode == 0, done.stdout
    assert "host n2 is ready" in done.stdout
    assert hosts_of(tmp_path) == ["n1", "n2"]


def test_hosts_of_the_description_replace_the_nodes_of_the_job(tmp_path: Path) -> None:
    program = [sys.executable, tmp_path / "where.py"]
    hosts = "titin: {hosts: {second: {address: n2, start: srun, components: [a]}, localhost: {components: [b]}}}\n"
    done = run(tmp_path, where(tmp_path, [(*program, "a"), (*program, "b")], hosts), CLUSTER)
    assert done.returncode == 0, done.stdout
    assert "host second is ready" in done.stdout
    assert hosts_of(tmp_path) == ["n2", "n1"]


def test_srun_as_an_executable_goes_to_the_node_that_it_is_told(tmp_path: Path) -> None:
    srun = ["srun", "--overlap", "--cpu-bind=none", "--nodes=1", "--ntasks=1", "--relative=1"]
    program = [sys.executable, tmp_path / "where.py"]
    programs = [(*program, "a"), (*srun, *program, "b")]
    done = run(tmp_path, where(tmp_path, programs, "titin: {hosts: {localhost: {}}}\n"), CLUSTER)
    assert done.returncode == 0, done.stdout
    assert hosts_of(tmp_path) == ["n1", "n2"]


PLACES = """\
import os, sys
from pathlib import Path
from mpi4py import MPI
import numpy as np
import titin

sends = sys.argv[1] == "a"
ports = {"o_i": ["u"]} if sends else {"s": ["u"]}
with titin.Instance(**ports, comm=MPI.COMM_WORLD) as instance:
    instance.reuse()
    field = instance.field("u", (12,), float, owned=titin.Grid((instance.ranks,)))
    mine = np.full(12 // instance.ranks, 7.0 if sends else 0.0)
    field.send(mine, timestamp=0.0) if sends else field.receive(mine)
    assert (mine == 7).all()
    shared = [line for line in Path("/proc/self/maps").read_text().splitlines() if "/memfd:titin-ring" in line]
    places = sum(not path.name.startswith("titin-agent-") for path in Path("/dev/shm").glob("titin-*"))
    session = os.environ.get("OMPI_MCA_orte_top_session_dir")
    assert session is None or Path(session).is_dir(), session
    Path(f"rank{instance.rank}").write_text(f"{os.uname().nodename} {places} {'mapped' if shared else ''}")
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize("launcher", ["openmpi", OPENMPI])
def test_ranks_of_each_host_share_memory_and_nothing_is_left(tmp_path: Path, launcher: str) -> None:
    (tmp_path / "places.py").write_text(PLACES)
    programs = [(sys.executable, tmp_path / "places.py", side) for side in "ab"]
    text = on(2, 2, on(2, 4, pair(("o_i: u", "s: u"), "a.u: b.u", programs, (4, 2))))
    text = text.replace("execution_model: openmpi", f"execution_model: {launcher}")
    (tmp_path / "after.sh").write_text(
        '"$@" && srun -N2 -n2 sh -c "ls -d /dev/shm/titin-* \\$TMPDIR/titin-* 2>/dev/null; echo looked"\n'
    )
    done = run(tmp_path, text, CLUSTER, "sh", tmp_path / "after.sh")
    assert done.stdout.count("looked") == 2 and "titin-" not in done.stdout.partition("looked")[2], done.stdout
    told = [path.read_text() for path in tmp_path.glob("run/instances/*/workdir/rank*")]
    assert sorted(told) == ["n1 1 mapped"] * 3 + ["n2 1 mapped"] * 3
