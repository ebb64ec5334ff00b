"""The programs in C that benchmarks run: built against the installed titin, or against a rival."""

from __future__ import annotations

import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import PROGRAMS, ROOT, run

TITIN = Path(sys.executable).parent / "titin"
FOLDER = ROOT / "build" / "benchmarks"

#: What stands in /usr if a rival can be built and run, and the Debian package that brings it.
PACKAGES = [
    "mpicc.openmpi:libopenmpi-dev",
    "mpirun.openmpi:openmpi-bin",
    "mpicc.mpich:libmpich-dev",
    "mpiexec.mpich:mpich",
    "/usr/include/zmq.h:libzmq3-dev",
    "taskset:util-linux",
]

#: Starters of the two MPIs; the programs see to their cores themselves, so that all are pinned the same way.
OPEN_MPI = ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe"]
OPEN_MPI_YIELD = [*OPEN_MPI, "--mca", "mpi_yield_when_idle", "1"]
MPICH = ["mpiexec.mpich", "-bind-to", "none"]


@functools.cache
def build(name: str) -> Path:
    """Compiles ``programs/NAME.c`` against titin; the executable."""
    flags = subprocess.run([TITIN, "config", "--cflags", "--libs"], capture_output=True, text=True, check=True)
    return compiled(name, name, "cc", shlex.split(flags.stdout))


@functools.cache
def parallel(name: str) -> Path:
    """Compiles ``programs/NAME.c`` against titin and Open MPI; the executable."""
    packages()
    flags = subprocess.run([TITIN, "config", "--cflags", "--libs"], capture_output=True, text=True, check=True)
    return compiled(name, name, "mpicc.openmpi", shlex.split(flags.stdout))


@functools.cache
def library(name: str) -> Path:
    """Compiles ``programs/NAME.c`` to a shared library of titin's."""
    flags = subprocess.run([TITIN, "config", "--cflags", "--libs"], capture_output=True, text=True, check=True)
    return compiled(name, f"{name}.so", "cc", ["-shared", "-fPIC", *shlex.split(flags.stdout)])


@functools.cache
def rival(name: str, flavour: str) -> Path:
    """Compiles ``programs/NAME.c`` for ``openmpi``, ``mpich``, ``zmq``, ``threads`` or ``plain``; the executable."""
    packages()
    compiler, libraries = {
        "openmpi": ("mpicc.openmpi", []),
        "mpich": ("mpicc.mpich", []),
        "zmq": ("cc", ["-lzmq"]),
        "plain": ("cc", []),
        "threads": ("cc", ["-pthread"]),
    }[flavour]
    return compiled(name, f"{name}_{flavour}", compiler, libraries)


@functools.cache
def packages() -> None:
    """Installs the rivals, where they are missing."""
    subprocess.run([ROOT / "tools" / "packages.sh", *PACKAGES], check=True)
    if os.geteuid() == 0:
        os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def compiled(source: str, name: str, compiler: str, libraries: Sequence[str]) -> Path:
    """Compiles a program as all of them are: optimized, for any processor of its kind."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    executable = FOLDER / name
    command = [
        compiler,
        "-D_GNU_SOURCE",
        "-O2",
        "-Wall",
        "-Wextra",
        "-o",
        executable,
        PROGRAMS / f"{source}.c",
        *libraries,
    ]
    subprocess.run(command, check=True)
    return executable


def times(path: Path) -> dict[int, float]:
    """What the programs write, "BYTES SECONDS" a line, in microseconds."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {int(size): 1e6 * float(seconds) for size, seconds in lines}


def titin_run(model: str, folder: Path, *flags: str, cores: int | None = None) -> None:
    """Runs a model of this text with everything in the folder, on so many cores if that is said."""
    (folder / "model.ymmsl").write_text(model)
    run([*on_cores(cores), TITIN, "run", "model.ymmsl", "--run-dir", folder / "run", *flags], folder)


def on_cores(count: int | None) -> list[str]:
    """What goes before a command that may use so many cores."""
    if count is None:
        return []
    first = sorted(os.sched_getaffinity(0))[:count]
    return ["taskset", "-c", ",".join(str(core) for core in first)]
