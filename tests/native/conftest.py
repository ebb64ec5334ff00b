"""Programs in C, C++ and Fortran: compiled once, and run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ..conftest import TITIN, config

HERE = Path(__file__).resolve().parent

#: The compiler of each language, with the options of a strict project.
COMPILERS = {
    "c": ["cc", "-std=c11", "-D_GNU_SOURCE", "-Wpedantic"],
    "cpp": ["c++", "-std=c++17", "-Wpedantic", "-Wshadow"],
    "cpp20": ["c++", "-std=c++20"],
    "f90": ["gfortran", "-std=f2018", "-frecursive", "-Wno-compare-reals"],
}

#: Two programs that send their data to each other.
EXCHANGE = """\
ymmsl_version: v0.2
models:
  exchange:
    components:
      left: {{ports: {{o_i: out, s: in}}, implementation: left}}
      right: {{ports: {{o_i: out, s: in}}, implementation: right}}
    conduits:
      left.out: right.in
      right.out: left.in
programs:
  left: {{executable: {left}, args: [left], env: {{{env}}}}}
  right: {{executable: {right}, args: [right], env: {{{env}}}}}
"""

Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles ``NAME.LANGUAGE`` of this folder, or the library ``NAME.so``; returns the path."""
    known: dict[tuple[str, str, bool], Path] = {}

    def compiled(name: str, language: str, *, shared: bool = False) -> Path:
        key = (name, language, shared)
        if key not in known:
            folder = tmp_path_factory.mktemp(f"{name}-{language}")
            program = folder / (f"{name}.so" if shared else name)
            compiler = [*COMPILERS[language], "-Wall", "-Wextra", "-Werror", "-g", *config("--cflags")]
            # In a program at fixed addresses, pointers to functions of titin also lead to the table of calls, which
            # test_calls watches.
            kind = ["-shared", "-fPIC"] if shared else ["-no-pie", "-fno-pie"]
            modules = config("--fortran") if language == "f90" else []
            source = HERE / f"{name}.{language.removesuffix('20')}"
            command = [*compiler, *kind, *modules, source, "-o", program, *config("--libs"), "-lm"]
            subprocess.run(command, check=True, cwd=folder)
            # Set only now: if the compiler fails, the next test compiles again and fails with the same text.
            known[key] = program
        return known[key]

    return compiled


def run(folder: Path, model: str) -> None:
    """Runs a model in this folder with ``titin run``; it must end well."""
    (folder / "model.ymmsl").write_text(model)
    done = subprocess.run(
        [TITIN, "run", "model.ymmsl", "--run-dir", "run"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = "".join(file.read_text() for file in folder.glob("run/instances/*/stderr.txt"))
    assert done.returncode == 0, done.stdout + said


def sleeps(process: int) -> bool:
    """Whether the main thread of a process is asleep."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    except OSError:
        return False


def processes(program: Path, argument: str) -> list[int]:
    """The processes that run this program with this argument."""
    wanted = f"{program}\0{argument}\0".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int(entry.name) != os.getpid() and (entry / "cmdline").read_bytes() == wanted:
                found.append(int(entry.name))
        except OSError:
            continue
    return found
