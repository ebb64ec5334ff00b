"""Programs for MUSCLE 2's interfaces: compiled once, and run in runs of titin."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ...conftest import TITIN, config, needs

HERE = Path(__file__).resolve().parent
WATCHDOG = 120  # seconds; only a hang takes so long
STRICT = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

#: The compiler and its options by the ending of a source file.
COMPILERS = {
    ".cpp": ["c++", "-std=c++98", "-Wno-long-long", *STRICT],
    ".c": ["cc", "-std=c11", *STRICT],
    # Without an interface of MUSCLE_Send newer releases of gfortran want this for arrays of several types in one file.
    ".f90": ["gfortran", "-Wall", "-fallow-argument-mismatch"],
}

Build = Callable[..., str]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles a source file of this folder with the flags of ``titin config``; returns the path of the program."""
    known: dict[tuple[str, str], str] = {}

    def compiled(name: str, compiler: str = "", *options: str) -> str:
        key = (name, compiler)
        if key not in known:
            usual, *flags = COMPILERS[Path(name).suffix]
            needs(compiler or usual)
            program = tmp_path_factory.mktemp("built") / Path(name).stem
            headers = config("--compat", "muscle2", "--cflags") if not name.endswith(".f90") else []
            sources = config("--compat", "muscle2", "--fortran") if name == "module.f90" else []
            flags = flags[:-1] if sources else flags
            libraries = config("--compat", "muscle2", "--libs")
            command = [compiler or usual, *flags, *options, *headers, *sources, HERE / name, "-o", program, *libraries]
            subprocess.run(command, check=True, cwd=program.parent)
            known[key] = str(program)
        return known[key]

    return compiled


@dataclass(frozen=True)
class Run:
    """How a run has ended."""

    code: int
    said: str
    folder: Path

    def printed(self, instance: str) -> str:
        return (self.folder / "instances" / instance / "stdout.txt").read_text()

    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))


def run(
    folder: Path, components: str, conduits: str, programs: dict[str, str], settings: str = "{}", more: str = ""
) -> Run:
    """Runs a model. A program is the words of its command; ``*.py`` is run by this Python."""
    text = f"ymmsl_version: v0.2\nmodels:\n  tested:\n    components:\n{components}    conduits: {conduits}\n"
    text += f"{more}programs:\n"
    for name, command in programs.items():
        executable, *words = command.split()
        if executable.endswith(".py"):
            executable, words = sys.executable, [executable, *words]
        model = "\n    execution_model: openmpi" if name.startswith("mpi_") else ""
        text += f"  {name}:\n    executable: {executable}\n    args: {words!r}{model}\n"
    text += f"settings: {settings}\n"
    if any(name.startswith("mpi_") for name in programs):
        text += "resources: {tested.macro: {mpi_processes: 2}}\n"
    path = folder / "model.ymmsl"
    path.write_text(text)
    done = subprocess.run(
        [TITIN, "run", path, "--run-dir", folder / "run"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
    )
    return Run(done.returncode, done.stdout + done.stderr, folder / "run")
