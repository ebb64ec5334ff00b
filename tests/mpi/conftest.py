"""Parallel programs: compiled for each MPI that there is, and run."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import TITIN, config

HERE = Path(__file__).resolve().parent

#: Open MPI wants root, which tests are in a container, to say that it means it.
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

MPIS = ["openmpi", "mpich"]

#: The compiler of each language, and the modules of titin that a program takes with it.
COMPILERS = {
    "c": (["mpicc.{mpi}", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"], []),
    "cpp": (["mpicxx.{mpi}", "-std=c++17", "-Wall", "-Wextra"], []),
    "f90": (["mpifort.{mpi}", "-std=f2018", "-frecursive", "-Wall"], ["--fortran", "--fortran-mpi"]),
    "f08": (["mpifort.{mpi}", "-std=f2018", "-frecursive", "-Wall"], ["--fortran", "--fortran-mpi-f08"]),
}

Build = Callable[[str, str, str], Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles ``NAME.LANGUAGE`` of this folder for an MPI; where the program lies."""
    known: dict[tuple[str, str, str], Path] = {}

    def compiled(name: str, language: str, mpi: str) -> Path:
        key = (name, language, mpi)
        if key not in known:
            compiler, modules = COMPILERS[language]
            command = [word.format(mpi=mpi) for word in compiler]
            if shutil.which(command[0]) is None:
                assert "CI" not in os.environ, f"there is no {command[0]}; make test-python installs one"
                pytest.skip(f"there is no {command[0]} here")
            folder = tmp_path_factory.mktemp(f"{name}-{language}-{mpi}")
            known[key] = folder / name
            source = HERE / f"{name}.{language.replace('f08', 'f90')}"
            sources = [source]
            if language == "f08":
                sources = [folder / "f08.f90"]
                text = source.read_text().replace("use mpi\n", "use mpi_f08\n")
                sources[0].write_text(text.replace("use titin_mpi\n", "use titin_mpi_f08\n"))
            flags = [*config("--cflags"), *(config(*modules) if modules else [])]
            command += ["-g", *flags, *map(str, sources), "-o", str(known[key]), *config("--libs"), "-lm"]
            subprocess.run(command, check=True, cwd=folder)
        return known[key]

    return compiled


@pytest.fixture
def python() -> None:
    """Programs in Python are started by Open MPI, which mpi4py takes."""
    if shutil.which("mpirun.openmpi") is None:
        pytest.skip("there is no Open MPI here")


def run(folder: Path, model: str) -> subprocess.CompletedProcess[str]:
    """Runs a model in this folder with ``titin run``."""
    (folder / "model.ymmsl").write_text(model)
    return subprocess.run(
        [TITIN, "run", "model.ymmsl", "--run-dir", "run"],
        cwd=folder,
        env=os.environ | ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
