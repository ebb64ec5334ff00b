"""Programs for MUSCLE3's C++ interface: compiled once, and run."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ...conftest import ROOT, config, needs
from .models import MODELS, original_commands, run

HERE = Path(__file__).resolve().parent
INCLUDE = ROOT / "compat/muscle3/cpp/include"

#: The compilers, with the options of a strict project of C++14.
STRICT = ["-std=c++14", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]

Build = Callable[..., Path]
Original = Callable[[str], dict[str, str]]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles ``NAME.cpp`` of this folder; returns the path of the program."""
    known: dict[tuple[str, str], Path] = {}

    def compiled(name: str, compiler: str = "c++") -> Path:
        key = (name, compiler)
        if key not in known:
            needs(compiler)
            program = tmp_path_factory.mktemp(f"{name}-{Path(compiler).name}") / name
            mpi = (
                ["-DMUSCLE_ENABLE_MPI", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
                if compiler.startswith("mpi")
                else []
            )
            includes = [f"-I{INCLUDE}", *config("--cflags"), *mpi]
            command = [compiler, *STRICT, *includes, HERE / f"{name}.cpp", "-o", program, *config("--libs")]
            subprocess.run(command, check=True)
            known[key] = program
        return known[key]

    return compiled


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Original:
    """What MUSCLE3's own library writes when it runs a model: by instance. Each model is run once."""
    known: dict[str, dict[str, str]] = {}

    def written(name: str) -> dict[str, str]:
        if name not in known:
            model = MODELS[name]
            known[name] = run(model, original_commands(model), tmp_path_factory.mktemp("original"), original=True)
        return known[name]

    return written
