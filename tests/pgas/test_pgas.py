"""Global arrays and coarrays of every kind, filled by a serial program that gets them back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ..mpi.conftest import pair, run
from .cases import PROGRAMS
from .conftest import HERE, MPIS, Build


def model(program: Path, name: str, language: str, mpi: str, processes: int) -> str:
    """The program and its peer."""
    cases = PROGRAMS[name, language]
    back = ", ".join(f"{case}_back" for case in cases)
    conduits = [f"peer.{case}: adds.{case}, adds.{case}_back: peer.{case}_back" for case in cases]
    return f"""ymmsl_version: v0.2
models:
  pgas:
    components:
      peer: {{description: looks, ports: {{o_i: [{", ".join(cases)}], s: [{back}]}}, implementation: peer}}
      adds: {{description: adds 1, ports: {{f_init: [{", ".join(cases)}], o_f: [{back}]}}, implementation: adds}}
    conduits: {{{", ".join(conduits)}}}
programs:
  peer: {{executable: {sys.executable}, args: [{HERE / "peer.py"}, {name}, {language}]}}
  adds: {{executable: {program}, execution_model: {mpi}, env: {json.dumps(MPIS[mpi])}}}
resources:
  pgas.adds: {{mpi_processes: {processes}}}
"""


#: The program, its language, the number of processes, and their MPI.
TOGETHER = [
    ("arrays", "c", 4, "openmpi"),
    ("arrays", "c", 4, "mpich"),
    ("arrays", "cpp", 4, "openmpi"),
    ("arrays", "f90", 4, "openmpi"),
    ("images", "f90", 4, "openmpi"),
    ("images", "f90", 3, "openmpi"),
    ("images", "f90", 4, "mpich"),
]


@pytest.mark.parametrize(("name", "language", "processes", "mpi"), TOGETHER)
def test_arrays_of_every_kind_go_and_come_back(
    build: Build, tmp_path: Path, name: str, language: str, processes: int, mpi: str
) -> None:
    program = build(name, language, mpi)
    done = run(tmp_path, model(program, name, language, mpi, processes))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_a_global_array_takes_versions_and_follows_steps(build: Build, tmp_path: Path, language: str) -> None:
    program = build("versions", language, "openmpi")
    model = pair(
        ("o_i: [x, y], s: back", "o_i: back, s: [x, y]"),
        "a.x: b.x, a.y: b.y, b.back: a.back",
        [(sys.executable, HERE / "sends.py", "versions"), (program,)],
        (1, 3),
    )
    done = run(tmp_path, model + "titin: {fields: {b.x: {mode: pull, versions: 6}, b.y: {from: 2, until: 2}}}\n")
    assert done.returncode == 0, done.stdout


#: Arrays that cannot be coupled, and the text of the error for each.
REFUSED = {
    "type": "global array 'particles': its elements are of type 1017 of Global Arrays, which titin has not",
    "grid": "global array 'odd': it has a grid of processes of its own; couple one that is made by GA_Set_block_cyclic",
    "group": "global array 'odd': it is of another process group than the default one",
    "shape": "the sender couples 13 × 7 elements ([0:13, 0:7]), the receiver 13 × 8",
    "element": "its arrays are of float",
    "distribution": "its array is 7 × 7 here, halo and all; one of 13 × 2 was given",
    "another": "global array 'whole': it is of int64, but the field was declared with one of float64",
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_coupled_is_told(build: Build, tmp_path: Path, case: str) -> None:
    program = build("refused", "c", "openmpi")
    programs = [(sys.executable, HERE / "sends.py"), (program, case)]
    done = run(tmp_path, pair(("o_i: x", "s: x"), "a.x: b.x", programs, (1, 2)))
    assert done.returncode != 0
    assert REFUSED[case] in " ".join(done.stdout.split()), done.stdout
