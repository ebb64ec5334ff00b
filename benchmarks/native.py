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

#: Files in /usr that a rival needs to be built and run, each with the Debian package that brings the file.
PACKAGES = [
    "mpicc.openmpi:libopenmpi-dev",
    "mpirun.openmpi:openmpi-bin",
    "mpicc.mpich:libmpich-dev",
    "mpiexec.mpich:mpich",
    "/usr/include/zmq.h:libzmq3-dev",
    "taskset:util-linux",
    "valgrind:valgrind",
]

#: Launchers of the two MPIs. The programs pin themselves to cores, so that all are pinned the same way.
OPEN_MPI = ["mpirun.openmpi", "--bind-to", "none", "--oversubscribe"]
OPEN_MPI_YIELD = [*OPEN_MPI, "--mca", "mpi_yield_when_idle", "1"]
MPICH = ["mpiexec.mpich", "-bind-to", "none"]

#: Two ways to redistribute arrays by hand in one MPI job, and the names of the ways in the rivals' programs.
PACKED, TYPED = "by hand, MPI_Alltoallv", "by hand, MPI_Isend, derived types"
BY_HAND = {PACKED: "alltoallv", TYPED: "isend"}

#: The file that the programs write their times to, in a model or a command; the folder is the folder of the run.
RESULT = "{folder}/times"

#: A function that makes one run, and gives microseconds by the number at the beginning of each line of a program's
#: output.
Times = Callable[[], dict[int, float]]


@functools.cache
def build(name: str) -> Path:
    """Compiles ``programs/NAME.c`` against titin; returns the executable."""
    return compiled(name, name, "cc", titin_flags())


@functools.cache
def parallel(name: str) -> Path:
    """Compiles ``programs/NAME.c`` against titin and Open MPI; returns the executable."""
    packages()
    return compiled(name, name, "mpicc.openmpi", titin_flags())


@functools.cache
def library(name: str) -> Path:
    """Compiles ``programs/NAME.c`` to a shared library for titin's host of functions."""
    return compiled(name, f"{name}.so", "cc", ["-shared", "-fPIC", *titin_flags()])


@functools.cache
def rival(name: str, flavour: str) -> Path:
    """Compiles ``programs/NAME.c`` for ``openmpi``, ``mpich``, ``zmq``, ``threads`` or ``plain``; returns the
    executable."""
    packages()
    compiler, libraries = {
        "openmpi": ("mpicc.openmpi", []),
        # gcc takes MPICH's constants for "no status" as memory of size zero, and warns.
        "mpich": ("mpicc.mpich", ["-Wno-stringop-overflow", "-Wno-stringop-overread"]),
        "zmq": ("cc", ["-lzmq"]),
        "plain": ("cc", []),
        "threads": ("cc", ["-pthread"]),
    }[flavour]
    return compiled(name, f"{name}_{flavour}", compiler, libraries)


@functools.cache
def packages() -> None:
    """Installs the missing rivals."""
    subprocess.run([ROOT / "tools" / "packages.sh", *PACKAGES], check=True)
    if os.geteuid() == 0:
        os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def titin_flags() -> list[str]:
    """The flags by which a program is compiled and linked with titin."""
    return shlex.split(run([TITIN, "config", "--cflags", "--libs"], ROOT))


def compiled(source: str, name: str, compiler: str, libraries: Sequence[str]) -> Path:
    """Compiles a program like all programs here: optimized, for any processor of this architecture."""
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
    """Runs a model with this text. The model's programs write to `RESULT`."""
    return timed(lambda folder: titin_run(model.replace("{folder}", str(folder)), folder, *flags, cores=cores))


def alone(*command: object, cores: int | None = None) -> Times:
    """Runs a command that starts both sides itself. Both sides write to `RESULT`."""
    words = [str(word) for word in command]
    return timed(
        lambda folder: run([*on_cores(cores), *(word.replace("{folder}", str(folder)) for word in words)], folder)
    )


def timed(start: Callable[[Path], object]) -> Times:
    """Calls ``start`` with a folder for one run, and reads the output of the programs."""

    def once() -> dict[int, float]:
        with scratch() as name:
            start(Path(name))
            return times(Path(name) / "times")

    return once


def times(path: Path) -> dict[int, float]:
    """The output of the programs, a line "BYTES SECONDS" for each size, in microseconds."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {int(size): 1e6 * float(seconds) for size, seconds in lines}


def titin_run(model: str, folder: Path, *flags: str, cores: int | None = None) -> None:
    """Runs a model with this text. All files go into the folder; ``cores`` limits the number of cores."""
    (folder / "model.ymmsl").write_text(model)
    run([*on_cores(cores), TITIN, "run", "model.ymmsl", "--run-dir", folder / "run", *flags], folder)


def open_mpi(ranks: int) -> list[object]:
    """The command that starts `ranks` ranks of Open MPI, to be put before the program."""
    return [*(OPEN_MPI_YIELD if crowded(ranks) else OPEN_MPI), "-np", ranks]


def parallel_pair(
    program: Path, words: Sequence[object], ranks: tuple[int, int], ports: tuple[str, str], conduits: Sequence[str]
) -> str:
    """The model of two instances of one program with `ranks` ranks. The program's arguments are the side, 0 or 1, and
    ``words``."""
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


def field_pair(program: Path, words: Sequence[object], ranks: int, fields: int) -> str:
    """The model of two instances of ``programs/small_field_titin.c``, of ``ranks`` ranks each, which pass fields to and
    fro."""
    outs, ins = (", ".join(f"{port}{number}" for number in range(fields)) for port in ("out", "in"))
    conduits = [
        f"{sender}.out{number}: {receiver}.in{number}"
        for sender, receiver in (("one", "other"), ("other", "one"))
        for number in range(fields)
    ]
    sides = f"o_i: [{outs}], s: [{ins}]"
    return parallel_pair(program, words, (ranks, ranks), (sides, sides), conduits)


def crowded(ranks: int) -> bool:
    """Whether there are more ranks than cores. Ranks that wait in MPI are then told to yield."""
    return ranks > len(os.sched_getaffinity(0))


def on_cores(count: int | None) -> list[str]:
    """The command that limits the number of cores, to be put before a command."""
    if count is None:
        return []
    first = sorted(os.sched_getaffinity(0))[:count]
    return ["taskset", "-c", ",".join(str(core) for core in first)]
