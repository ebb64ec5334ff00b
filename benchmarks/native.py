"""The programs in C that benchmarks run: built against the installed titin, or against a rival."""

from __future__ import annotations

import functools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.harness import PROGRAMS, ROOT, run, scratch

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
    "valgrind:valgrind",
]

#: Starters of the two MPIs; the programs see to their cores themselves, so that all are pinned the same way.
OPEN_MPI = ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe"]
OPEN_MPI_YIELD = [*OPEN_MPI, "--mca", "mpi_yield_when_idle", "1"]
MPICH = ["mpiexec.mpich", "-bind-to", "none"]

#: How arrays are redistributed by hand in one MPI job, in both ways, and what the rivals' programs call each.
PACKED, TYPED = "by hand, MPI_Alltoallv", "by hand, MPI_Isend, derived types"
BY_HAND = {PACKED: "alltoallv", TYPED: "isend"}

#: Where programs write, in a model or a command; the folder is that of the run.
RESULT = "{folder}/times"

#: Runs once; microseconds, by what stands before them in the lines of a program.
Times = Callable[[], dict[int, float]]


@functools.cache
def build(name: str) -> Path:
    """Compiles ``programs/NAME.c`` against titin; the executable."""
    return compiled(name, name, "cc", titin_flags())


@functools.cache
def parallel(name: str) -> Path:
    """Compiles ``programs/NAME.c`` against titin and Open MPI; the executable."""
    packages()
    return compiled(name, name, "mpicc.openmpi", titin_flags())


@functools.cache
def library(name: str) -> Path:
    """Compiles ``programs/NAME.c`` to a shared library of titin's."""
    return compiled(name, f"{name}.so", "cc", ["-shared", "-fPIC", *titin_flags()])


@functools.cache
def rival(name: str, flavour: str) -> Path:
    """Compiles ``programs/NAME.c`` for ``openmpi``, ``mpich``, ``zmq``, ``threads`` or ``plain``; the executable."""
    packages()
    compiler, libraries = {
        "openmpi": ("mpicc.openmpi", []),
        # gcc takes the constants of MPICH that stand for no status for memory of no size.
        "mpich": ("mpicc.mpich", ["-Wno-stringop-overflow", "-Wno-stringop-overread"]),
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


def titin_flags() -> list[str]:
    """What a program is compiled and linked with."""
    return shlex.split(run([TITIN, "config", "--cflags", "--libs"], ROOT))


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


def coupled(model: str, *flags: str, cores: int | None = None) -> Times:
    """Runs a model of this text, whose programs write to `RESULT`."""
    return timed(lambda folder: titin_run(model.replace("{folder}", str(folder)), folder, *flags, cores=cores))


def alone(*command: object, cores: int | None = None) -> Times:
    """Runs a command that starts both sides itself, which write to `RESULT`."""
    words = [str(word) for word in command]
    return timed(
        lambda folder: run([*on_cores(cores), *(word.replace("{folder}", str(folder)) for word in words)], folder)
    )


def timed(start: Callable[[Path], object]) -> Times:
    """Starts something in a folder for one run, and reads what its programs have written."""

    def once() -> dict[int, float]:
        with scratch() as name:
            start(Path(name))
            return times(Path(name) / "times")

    return once


def times(path: Path) -> dict[int, float]:
    """What the programs write, "BYTES SECONDS" a line, in microseconds."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {int(size): 1e6 * float(seconds) for size, seconds in lines}


def titin_run(model: str, folder: Path, *flags: str, cores: int | None = None) -> None:
    """Runs a model of this text with everything in the folder, on so many cores if that is said."""
    (folder / "model.ymmsl").write_text(model)
    run([*on_cores(cores), TITIN, "run", "model.ymmsl", "--run-dir", folder / "run", *flags], folder)


def open_mpi(ranks: int) -> list[object]:
    """What goes before a program of so many ranks."""
    return [*(OPEN_MPI_YIELD if crowded(ranks) else OPEN_MPI), "-np", ranks]


def parallel_pair(
    program: Path, words: Sequence[object], ranks: tuple[int, int], ports: tuple[str, str], conduits: Sequence[str]
) -> str:
    """The model of two sides with so many ranks that are one program, told which it is, 0 or 1, and these words."""
    arguments = [json.dumps([str(word) for word in (side, *words)]) for side in (0, 1)]
    env = "{OMPI_MCA_mpi_yield_when_idle: '1'}" if crowded(sum(ranks)) else "{}"
    common = f"executable: {program}, execution_model: openmpi, env: {env}"
    return f"""ymmsl_version: v0.2
description: For timing.
models:
  pair:
    components:
      one: {{description: the first side, ports: {{{ports[0]}}}, implementation: one}}
      other: {{description: the second side, ports: {{{ports[1]}}}, implementation: other}}
    conduits: {{{", ".join(conduits)}}}
programs:
  one: {{{common}, args: {arguments[0]}}}
  other: {{{common}, args: {arguments[1]}}}
resources: {{pair.one: {{mpi_processes: {ranks[0]}}}, pair.other: {{mpi_processes: {ranks[1]}}}}}
"""


def crowded(ranks: int) -> bool:
    """Whether there are more ranks than cores, so that those that wait in MPI are told to yield."""
    return ranks > len(os.sched_getaffinity(0))


def on_cores(count: int | None) -> list[str]:
    """What goes before a command that may use so many cores."""
    if count is None:
        return []
    first = sorted(os.sched_getaffinity(0))[:count]
    return ["taskset", "-c", ",".join(str(core) for core in first)]
