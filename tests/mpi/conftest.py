"""Parallel programs: compiled for each MPI that there is, and run."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ..conftest import TITIN, TOOLS, config, needs

HERE = Path(__file__).resolve().parent

#: Intel MPI is for processors of Intel's kind only.
MPIS = ["openmpi", "mpich", *(["intelmpi"] if platform.machine() == "x86_64" else [])]

#: Where make test-packages puts Intel MPI, unless the user has one.
INTEL = Path(os.environ.get("I_MPI_ROOT", TOOLS.parent / "intelmpi"))
if INTEL.is_dir():
    os.environ["I_MPI_ROOT"] = str(INTEL)

#: For each language: the compiler with its options, and the options of `titin config` for titin's modules.
COMPILERS = {
    "c": (["mpicc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror"], []),
    "cpp": (["mpicxx", "-std=c++17", "-Wall", "-Wextra"], []),
    "f90": (["mpifort", "-std=f2018", "-frecursive", "-Wall"], ["--fortran", "--fortran-mpi"]),
    "f08": (["mpifort", "-std=f2018", "-frecursive", "-Wall"], ["--fortran", "--fortran-mpi-f08"]),
}

Build = Callable[[str, str, str], Path]


def wrapper(compiler: str, mpi: str) -> list[str]:
    """The compiler of an MPI: several MPIs may be installed, and each has an mpicc."""
    if mpi != "intelmpi":
        needs(f"{compiler}.{mpi}")
        return [f"{compiler}.{mpi}"]
    compiler = str(INTEL / "bin" / compiler.replace("mpifort", "mpif90"))
    needs(compiler)
    if not compiler.endswith("mpif90"):
        return [compiler]
    # The wrapper does not find the modules where pip puts them. The modules for gfortran have no mpi_f08.
    needs("gfortran")
    version = subprocess.run(["gfortran", "-dumpversion"], capture_output=True, text=True, check=True).stdout
    modules = sorted(INTEL.glob(f"include/mpi/gfortran/{version.split('.')[0].strip()}.*"))
    return [compiler, *(f"-I{folder}" for folder in modules)]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles ``NAME.LANGUAGE`` of this folder for an MPI; returns the program's path."""
    known: dict[tuple[str, str, str], Path] = {}

    def compiled(name: str, language: str, mpi: str) -> Path:
        key = (name, language, mpi)
        if key not in known:
            (compiler, *options), modules = COMPILERS[language]
            command = [*wrapper(compiler, mpi), *options]
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
    """Programs in Python are started by Open MPI, which this mpi4py is built for."""
    needs("mpirun.openmpi")


def pair(
    ports: tuple[str, str], conduits: str, programs: Sequence[Sequence[object]], ranks: tuple[int, int] = (1, 1)
) -> str:
    """A model of two programs, `a` and `b`, with their arguments, on `ranks` ranks each. A program with one rank is
    serial."""
    started, resources = [], []
    for name, (executable, *args), count in zip("ab", programs, ranks, strict=True):
        mpi = ", execution_model: openmpi" if count > 1 else ""
        started.append(f"{name}: {{executable: {executable}, args: {list(map(str, args))}{mpi}}}")
        resources.append(f"pair.{name}: {{{'mpi_processes' if count > 1 else 'threads'}: {count}}}")
    return f"""ymmsl_version: v0.2
models:
  pair:
    components:
      a: {{description: one side, ports: {{{ports[0]}}}, implementation: a}}
      b: {{description: the other side, ports: {{{ports[1]}}}, implementation: b}}
    conduits: {{{conduits}}}
    matching_timelines: {{a: [b]}}
programs:
  {started[0]}
  {started[1]}
resources: {{{", ".join(resources)}}}
"""


def run(folder: Path, model: str, *around: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a model in this folder with ``titin run``; ``around`` is a command that starts ``titin run``."""
    (folder / "model.ymmsl").write_text(model)
    return subprocess.run(
        [*around, TITIN, "run", "model.ymmsl", "--run-dir", "run"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
