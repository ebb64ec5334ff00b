"""MUSCLE3's own generated Fortran module over titin's C++ headers, where its sources are at hand.

No index of packages has these sources: the archives of ``muscle3`` hold the Python part only. The variable
``TITIN_MUSCLE3_SOURCES`` names the folder of a checkout of MUSCLE3 0.9 to 0.11, with ``libmuscle/fortran/src`` in it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ...conftest import config, needs
from ..cpp.conftest import INCLUDE, Original
from ..cpp.models import MODELS, run
from .conftest import HERE

SOURCES = Path(os.environ.get("TITIN_MUSCLE3_SOURCES", "")) / "libmuscle"

pytestmark = pytest.mark.skipif(
    "TITIN_MUSCLE3_SOURCES" not in os.environ, reason="TITIN_MUSCLE3_SOURCES names no folder with MUSCLE3's sources"
)


def source(part: str, name: str) -> Path:
    """A source of MUSCLE3: releases differ in the extension of Fortran."""
    found = [path for path in (SOURCES / part).glob(f"{name}.*") if path.suffix in (".f90", ".f03", ".cpp")]
    assert len(found) == 1, f"{SOURCES / part} has not one {name}: TITIN_MUSCLE3_SOURCES names a checkout of MUSCLE3"
    return found[0]


@pytest.fixture(scope="module")
def own_module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the objects and modules: of MUSCLE3 all that its Fortran has, of titin what stands behind it."""
    needs("gfortran", "c++")
    folder = tmp_path_factory.mktemp("own-module")
    for part, name in (("ymmsl", "ymmsl"), ("libmuscle", "libmuscle")):
        subprocess.run(["gfortran", "-c", source(f"fortran/src/{part}", name)], cwd=folder, check=True)
    # Titin's headers stand before those of MUSCLE3, which has the arguments of the command line here.
    includes = [f"-I{INCLUDE}", *config("--cflags"), f"-I{SOURCES / 'cpp/src'}"]
    for part, name in (
        ("ymmsl", "ymmsl_fortran_c"),
        ("libmuscle", "libmuscle_fortran_c"),
        ("libmuscle", "cmdlineargs"),
    ):
        path = source(f"cpp/src/{part}/bindings", name)
        subprocess.run(["c++", "-std=c++14", "-w", *includes, "-c", path], cwd=folder, check=True)
    return folder


def test_it_compiles_and_runs_as_the_original(own_module: Path, original: Original, tmp_path: Path) -> None:
    """Driver, balancer and workers, with overlays and vector ports."""
    objects = sorted(own_module.glob("*.o"))
    commands = {}
    for name in MODELS["members"].programs:
        program = tmp_path / name
        files = [HERE / "record.f90", HERE / f"{name}.f90", *objects]
        command = ["gfortran", f"-I{own_module}", f"-J{tmp_path}", *files, "-o", program, *config("--libs")]
        subprocess.run([*command, "-lstdc++"], check=True)
        commands[name] = [str(program)]
    assert run(MODELS["members"], commands, tmp_path) == original("members")
