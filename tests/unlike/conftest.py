"""Programs for aarch64, which an emulator runs, beside programs for the processor of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from ..conftest import ROOT, config
from ..native import conftest as native

sys.path.insert(0, str(ROOT / "tools"))
import aarch64

#: Compiles the programs of tests/native for this machine.
build = native.build
#: The compilers for aarch64. They take the options of those for this machine.
COMPILERS = {"c": "gcc", "cpp": "g++", "f90": "gfortran"}
#: The number of the processor in the head of a program.
EM_AARCH64 = 183


class Program(NamedTuple):
    """How a component's program is started."""

    executable: Path
    args: tuple[object, ...]
    env: dict[str, str]
    ranks: int
    launcher: str

    def description(self) -> dict[str, Any]:
        """The entry under `programs`."""
        entry = {"executable": str(self.executable), "args": list(map(str, self.args)), "env": self.env}
        return entry | ({"execution_model": self.launcher} if self.launcher else {})


def here(program: Path, *args: object, ranks: int = 1, launcher: str = "") -> Program:
    """A program for the processor of this machine: compiled, or in Python."""
    python = program.suffix == ".py"
    return Program(
        Path(sys.executable) if python else program, (program, *args) if python else args, {}, ranks, launcher
    )


def emulated(program: Path, *args: object, ranks: int = 1, launcher: str = "") -> Program:
    """A program for aarch64: compiled, or in Python."""
    (emulator, *options), env = aarch64.EMULATED, {}
    if program.suffix == ".py":
        options.append(str(aarch64.SYSTEM / f"usr/bin/python{aarch64.python_version()}"))
        env["PYTHONPATH"] = str(aarch64.PACKAGES)
    return Program(Path("/usr/bin", emulator), (*options, program, *args), env, ranks, launcher)


def compile_for_aarch64(folder: Path, source: Path, *options: str, mpi: bool = False) -> Path:
    """Compiles a program for aarch64, with the options of the tests of its language; returns its path."""
    language = source.suffix[1:]
    program = folder / f"{source.stem}-{language}-aarch64"
    modules = folder / f"modules-{language}"  # each compilation writes the modules of titin
    modules.mkdir()
    compiler = [
        f"{aarch64.TRIPLE}-{COMPILERS[language]}",
        f"--sysroot={aarch64.SYSTEM}",
        *native.COMPILERS[language][1:],
    ]
    sources, library = [str(source)], aarch64.PREFIX / "lib"
    libraries = [f"-L{library}", f"-Wl,-rpath,{library}", "-ltitin", "-lm"]
    if language == "f90":
        sources = [*config("--fortran", *(["--fortran-mpi"] if mpi else [])), *sources]
    if mpi:
        options = (*options, *(f"-I{path}" for path in aarch64.mpich_headers()), "-DMPICH_SKIP_MPICXX")
        libraries = [*(["-lmpichfort"] if language == "f90" else []), "-lmpich", *libraries]
    command = [*compiler, *options, f"-I{aarch64.PREFIX / 'include'}", *sources, "-o", str(program), *libraries]
    subprocess.run(command, check=True, cwd=modules)
    assert program.read_bytes()[18:20] == EM_AARCH64.to_bytes(2, "little")
    return program


def run(folder: Path, name: str, model: dict[str, Any], programs: dict[str, Program], media: dict[str, str]) -> None:
    """Runs a model in this folder with ``titin run``; it must end well."""
    ranks = {f"{name}.{one}": {"mpi_processes": program.ranks} for one, program in programs.items() if program.launcher}
    description = {
        "ymmsl_version": "v0.2",
        "models": {name: model},
        "programs": {one: program.description() for one, program in programs.items()},
        "resources": ranks,
        "titin": {"medium": media},
    }
    native.run(folder, yaml.safe_dump({key: part for key, part in description.items() if part}, sort_keys=False))


@pytest.fixture(scope="session")
def _aarch64() -> None:
    """Leaves a test out where `make aarch64` could not make what the test needs; not where all tests count."""
    commands = (aarch64.EMULATOR, *(f"{aarch64.TRIPLE}-{compiler}" for compiler in COMPILERS.values()))
    for needed in (*commands, aarch64.PREFIX / "lib/libtitin.so"):
        if not shutil.which(needed, os.F_OK):
            assert "CI" not in os.environ, f"there is no {needed}: make aarch64"
            pytest.skip(f"there is no {needed} here: make aarch64")
