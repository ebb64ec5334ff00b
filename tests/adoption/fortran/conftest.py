"""Programs for MUSCLE3's Fortran interface: the modules are written and compiled once, and the programs with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ...conftest import ROOT, config, needs
from ..cpp.conftest import INCLUDE, build, original

__all__ = ["build", "original"]  # fixtures

HERE = Path(__file__).resolve().parent
GENERATOR = ROOT / "compat/muscle3/fortran/generate.py"
#: The options of a strict project, without warnings that are false for arrays of texts, or that tests mean.
FALSE_ALARMS = ["-Wno-compare-reals", "-Wno-maybe-uninitialized", "-Wno-uninitialized", "-Wno-unused-parameter"]
STRICT = ["-std=f2008", "-Wall", "-Wextra", *FALSE_ALARMS, "-Werror"]

Compile = Callable[..., Path]


@dataclass(frozen=True)
class Modules:
    """The folder of the modules, and their objects for a program of one process and for one of several ranks."""

    folder: Path
    serial: list[str]
    mpi: list[str]


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    folder = tmp_path_factory.mktemp("modules")
    subprocess.run([sys.executable, GENERATOR, "--output", folder], check=True)
    includes = [f"-I{INCLUDE}", *config("--cflags")]
    fortran = [*STRICT, "-c"]
    for source in ["muscle3_support", "ymmsl", "libmuscle"]:
        subprocess.run(["gfortran", *fortran, f"{source}.f90"], cwd=folder, check=True)
    cpp = ["-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Werror", *includes, "-c", "muscle3_fortran.cpp"]
    subprocess.run(["c++", *cpp], cwd=folder, check=True)
    mpi = []
    if needs_mpi():
        subprocess.run(["mpif90", *fortran, "libmuscle_mpi.f90"], cwd=folder, check=True)
        ranks = ["-DMUSCLE_ENABLE_MPI", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-o", "muscle3_fortran_mpi.o"]
        subprocess.run(["mpicxx", *ranks, *cpp], cwd=folder, check=True)
        mpi = ["libmuscle_mpi.o", "ymmsl.o", "muscle3_support.o", "muscle3_fortran_mpi.o"]
    return Modules(folder, ["libmuscle.o", "ymmsl.o", "muscle3_support.o", "muscle3_fortran.o"], mpi)


def needs_mpi() -> bool:
    needs("mpif90", "mpicxx")
    return True


@pytest.fixture(scope="session")
def build_fortran(modules: Modules, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compiles ``NAME.f90`` of this folder, for one process or for several ranks; returns the path of the program."""
    known: dict[str, Path] = {}

    def compiled(name: str, source: Path | None = None) -> Path:
        if name not in known:
            needs("gfortran")
            folder = tmp_path_factory.mktemp(f"{name}-f90")
            ranks = name == "ranks"
            compiler = "mpif90" if ranks else "gfortran"
            sources = [source or HERE / f"{name}.f90"]
            if not ranks and source is None:
                sources.insert(0, HERE / "record.f90")
            objects = [modules.folder / part for part in (modules.mpi if ranks else modules.serial)]
            program = folder / name
            command = [compiler, *STRICT, f"-I{modules.folder}", *sources, *objects, "-o", program]
            subprocess.run([*command, *config("--libs"), "-lstdc++"], cwd=folder, check=True)
            known[name] = program
        return known[name]

    return compiled
