"""Instances of many ranks: of several MPIs at once, in every language, and with the death of a rank."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from .conftest import COMPILERS, HERE, MPIS, Build, pair, run


def model(peers: dict[str, tuple[str, int]]) -> str:
    """A serial driver and its peers: for each peer, the program as yMMSL and the number of ranks."""
    to_peers = ", ".join(f"to_{name}" for name in peers)
    from_peers = ", ".join(f"from_{name}" for name in peers)
    components = "\n".join(
        f"      {name}: {{description: sums, ports: {{f_init: numbers, o_f: sum}}, implementation: {name}}}"
        for name in peers
    )
    conduits = ", ".join(f"driver.to_{name}: {name}.numbers, {name}.sum: driver.from_{name}" for name in peers)
    programs = "\n".join(f"  {name}: {program}" for name, (program, _) in peers.items())
    resources = ", ".join(f"sums.{name}: {{mpi_processes: {ranks}}}" for name, (_, ranks) in peers.items())
    driver = f"driver: {{executable: {sys.executable}, args: {[str(HERE / 'driver.py'), *peers]}}}"
    return f"""ymmsl_version: v0.2
models:
  sums:
    components:
      driver: {{description: asks, ports: {{o_i: [{to_peers}], s: [{from_peers}]}}, implementation: driver}}
{components}
    conduits: {{{conduits}}}
programs:
  {driver}
{programs}
resources: {{{resources}}}
"""


def started(program: str | Path, mpi: str, *args: object) -> str:
    """A parallel program as yMMSL."""
    return f"{{executable: {program}, args: {list(map(str, args))}, execution_model: {mpi}}}"


@pytest.mark.parametrize(
    ("mpi", "language"), [each for each in product(MPIS, COMPILERS) if each != ("intelmpi", "f08")]
)
def test_ranks_get_what_rank_0_gets(build: Build, tmp_path: Path, mpi: str, language: str) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", language, mpi), mpi), 3)}))
    assert done.returncode == 0, done.stdout
    assert "with 3 ranks" in done.stdout


ASKS = """
import sys

import numpy as np
import titin

with titin.Instance(o_i="ask more", s="answer") as instance:
    while instance.reuse():
        for use in range(3):
            for port in ("ask", "more"):
                data = np.full(3, float(use))
                instance.send(port, data, timestamp=use, next_timestamp=use + 1, settings={"k": 2.5})
            assert instance.receive("answer").data.tolist() == [use] * 3
"""


@pytest.mark.usefixtures("python")
@pytest.mark.parametrize(
    ("language", "mpi"), [("c", "openmpi"), ("cpp", "mpich"), ("f90", "openmpi"), ("py", "openmpi")]
)
def test_only_the_root_gets_data(build: Build, tmp_path: Path, language: str, mpi: str) -> None:
    """Five ranks, so that a rank passes on to others; checked by each rank."""
    (tmp_path / "asks.py").write_text(ASKS)
    if language == "py":
        rooted = started(sys.executable, mpi, HERE / "rooted.py")
    else:
        rooted = started(build("rooted", language, mpi), mpi)
    done = run(
        tmp_path,
        f"""ymmsl_version: v0.2
models:
  m:
    components:
      driver: {{description: asks, ports: {{o_i: ask more, s: answer}}, implementation: driver}}
      rooted: {{description: answers, ports: {{f_init: ask more, o_f: answer}}, implementation: rooted}}
    conduits: {{driver.ask: rooted.ask, driver.more: rooted.more, rooted.answer: driver.answer}}
programs:
  driver: {{executable: {sys.executable}, args: [{tmp_path}/asks.py]}}
  rooted: {rooted}
resources: {{m.rooted: {{mpi_processes: 5}}}}
""",
    )
    assert done.returncode == 0, done.stdout


def test_programs_of_different_mpis_take_part_in_one_run(build: Build, tmp_path: Path) -> None:
    peers = {name: (started(build("sums", "c", mpi), mpi), 2) for name, mpi in zip("abc", MPIS, strict=False)}
    done = run(tmp_path, model(peers))
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("python")
def test_python_with_mpi4py(tmp_path: Path) -> None:
    done = run(tmp_path, model({"a": (started(sys.executable, "openmpi", HERE / "sums.py"), 2)}))
    assert done.returncode == 0, done.stdout
    assert "with 2 ranks, Python" in done.stdout


def test_more_ranks_than_one_parent_has(build: Build, tmp_path: Path) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", "c", "mpich"), "mpich"), 40)}))
    assert done.returncode == 0, done.stdout


def test_one_rank_is_a_serial_program(build: Build, tmp_path: Path) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", "c", "openmpi"), "openmpi"), 1)}))
    assert done.returncode == 0, done.stdout
    assert "ranks," not in done.stdout


@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("rank", [0, 2])
def test_the_death_of_a_rank_ends_the_run_and_names_one(build: Build, tmp_path: Path, mpi: str, rank: int) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", "c", mpi), mpi, rank, "kill"), 3)}))
    assert done.returncode != 0
    # Hydra, the launcher of MPICH and Intel MPI, ends the other ranks at once, which may be faster than their news.
    killed_by_hydra = {"mpich": r"|ended with exit code 9\b", "intelmpi": r"|ended with exit code 137\b"}
    told = r"rank \d \(process \d+" + killed_by_hydra.get(mpi, "")
    assert re.search(rf"First: +a .*({told})", " ".join(done.stdout.split())), done.stdout
    assert "driver: the run has failed because of a" in done.stdout


def test_what_a_rank_of_mpich_leaves_that_is_killed_in_mpi_init_goes_with_the_run(build: Build, tmp_path: Path) -> None:
    program = build("left", "c", "mpich")
    subprocess.run(["mpiexec.mpich", "-n", "2", program], cwd=tmp_path, capture_output=True, check=False)
    others = Path((tmp_path / "left").read_text())
    done = run(tmp_path, model({"a": (started(program, "mpich"), 2)}))
    assert done.returncode != 0
    own = Path((tmp_path / "run/instances/a/workdir/left").read_text())
    assert others.exists(), "what is not the run's stays"
    others.unlink()
    assert not own.exists()


@pytest.mark.parametrize(("mpi", "launcher"), [("openmpi", "mpich"), ("mpich", "openmpi")])
def test_the_launcher_of_another_mpi_is_told(build: Build, tmp_path: Path, mpi: str, launcher: str) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", "c", mpi), launcher), 3)}))
    assert done.returncode != 0
    text = " ".join(done.stdout.split())
    assert re.search(r"First: +a was not let in: [^|]* start them with the launcher of their MPI", text), text
    assert "detected that one or more processes" not in text, "only what says something"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_fails_is_named(build: Build, tmp_path: Path, rank: int) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", "c", "openmpi"), "openmpi", rank, "fail"), 3)}))
    assert done.returncode != 0
    assert f"a reported an error: rank {rank}: the temperature is negative" in done.stdout, done.stdout


def test_ranks_that_call_different_things_are_told(build: Build, tmp_path: Path) -> None:
    done = run(tmp_path, model({"a": (started(build("sums", "c", "openmpi"), "openmpi", 1, "other"), 2)}))
    assert done.returncode != 0
    text = " ".join(done.stdout.split())
    assert "rank 1 calls try_receive on port 'numbers', but rank 0 calls receive on port 'numbers'" in text, text


@pytest.mark.usefixtures("python")
def test_ranks_without_a_communicator_are_told_to_give_one(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    # The process that is let in waits until MPI ends it together with the other process.
    script.write_text(
        "import os, traceback\n"
        "from mpi4py import MPI\n"
        "import titin\n"
        "try:\n"
        "    with titin.Instance(f_init=['numbers'], o_f=['sum']):\n"
        "        MPI.COMM_WORLD.Barrier()\n"
        "except titin.Error:\n"
        "    traceback.print_exc()\n"
        "    os._exit(1)\n"
    )
    done = run(tmp_path, model({"a": (started(sys.executable, "openmpi", script), 2)}))
    assert done.returncode != 0
    assert "open the instance with their communicator" in " ".join(done.stdout.split()), done.stdout


UNCHECKED = """\
import sys, time
import numpy as np
import titin
from mpi4py import MPI

sends = sys.argv[1] == "a"
ports = {"o_i": ["u"]} if sends else {"s": ["u"]}
with titin.Instance(**ports, comm=MPI.COMM_WORLD, unchecked="ranks end at different times") as instance:
    instance.reuse()
    field = instance.field("u", (12,), float, owned=titin.Grid((instance.ranks,)))
    mine = np.full(12 // instance.ranks, 7.0 if sends else 0.0)
    if instance.rank == 1:
        time.sleep(0.5)
    field.send(mine, timestamp=0.0) if sends else field.receive(mine)
    assert (mine == 7).all()
"""


@pytest.mark.usefixtures("python")
def test_rank_0_of_an_unchecked_program_waits_for_slower_ranks(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(UNCHECKED)
    programs = [(sys.executable, tmp_path / "late.py", side) for side in "ab"]
    done = run(tmp_path, pair(("o_i: u", "s: u"), "a.u: b.u", programs, (3, 2)))
    assert done.returncode == 0, done.stdout


AT_ONCE = """\
import sys
import titin

comm = None
if sys.argv[1] == "a":
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
with titin.Instance(**({"o_i": ["u"]} if comm else {"s": ["u"]}), comm=comm) as instance:
    if comm and instance.rank == 0:
        raise ValueError("the mesh is empty")
    instance.reuse()
    instance.reuse() if comm else instance.receive("u")
"""


@pytest.mark.usefixtures("python")
def test_ranks_hear_of_a_failure_of_rank_0_that_comes_before_they_have_joined(tmp_path: Path) -> None:
    (tmp_path / "once.py").write_text(AT_ONCE)
    programs = [(sys.executable, tmp_path / "once.py", side) for side in "ab"]
    done = run(tmp_path, pair(("o_i: u", "s: u"), "a.u: b.u", programs, (3, 1)))
    assert done.returncode == 1, done.stdout
    assert "the mesh is empty" in done.stdout, done.stdout
    assert "a        still runs after the failure" not in done.stdout, done.stdout
