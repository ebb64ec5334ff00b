"""Programs with coarrays and with Global Arrays: compiled for each MPI for which Debian has them, and run."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import config, needs

HERE = Path(__file__).resolve().parent

#: With Debian's MPICH, windows that MPI allocates give NGA_Get shifted data.
MPIS = {"openmpi": {}, "mpich": {"ARMCI_USE_WIN_ALLOCATE": "0"}}

WARN = ["-Wall", "-Wextra"]

#: The compiler of each language with titin's options. Fortran uses the size of integers that Global Arrays uses.
COMPILERS = {
    ("arrays", "c"): (["mpicc.{mpi}", "-std=c11", "-Werror", *WARN], ["--cflags"]),
    ("arrays", "cpp"): (["mpicxx.{mpi}", "-std=c++17", "-DOMPI_SKIP_MPICXX", "-Werror", *WARN], ["--cflags"]),
    ("arrays", "f90"): (["mpifort.{mpi}", "-cpp", "-fdefault-integer-8"], ["--fortran", "--fortran-ga"]),
    ("images", "f90"): (["caf.{mpi}", "-std=f2018", "-Wall"], ["--fortran", "--fortran-coarray"]),
    ("refused", "c"): (["mpicc.{mpi}", "-std=c11", "-Werror", *WARN], ["--cflags"]),
}
COMPILERS |= {("versions", language): COMPILERS["arrays", language] for language in ("c", "cpp", "f90")}

Build = Callable[[str, str, str], Path]


def arrays(mpi: str) -> Path:
    """The program ga-config of this MPI, which prints the flags of Global Arrays."""
    where = f"*/ga/{mpi}/bin/ga-config"
    return next(Path("/usr/lib").glob(where), Path("/usr/lib") / where)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles ``NAME.LANGUAGE`` of this folder for an MPI; returns the program's path."""
    known: dict[tuple[str, str, str], Path] = {}

    def compiled(name: str, language: str, mpi: str) -> Path:
        key = (name, language, mpi)
        if key not in known:
            compiler, flags = COMPILERS[name, language]
            command = [word.format(mpi=mpi) for word in compiler]
            needs(command[0])
            libraries = config("--libs")
            if name != "images":
                needs(arrays(mpi))
                said = subprocess.run([arrays(mpi), "--libs"], capture_output=True, text=True, check=True)
                libraries += [*shlex.split(said.stdout), "-lgfortran", "-lm"]
            folder = tmp_path_factory.mktemp(f"{name}-{language}-{mpi}")
            known[key] = folder / name
            command += ["-g", *config(*flags), str(HERE / f"{name}.{language}"), "-o", str(known[key]), *libraries]
            subprocess.run(command, check=True, cwd=folder)
        return known[key]

    return compiled
