"""The interface as build systems find it: pkg-config, CMake and a Makefile for the modules of Fortran."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from ...conftest import ROOT, TITIN, config, needs
from .models import MODELS, run

COMPAT = ROOT / "compat/muscle3"
HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files in a folder of their own, as they are installed."""
    prefix = tmp_path_factory.mktemp("installed") / "muscle3"
    shutil.copytree(COMPAT / "cpp", prefix)
    shutil.copytree(COMPAT / "fortran", prefix / "fortran")
    return prefix


def flags(prefix: list[Path], *words: str) -> list[str]:
    titin = subprocess.run(
        [TITIN, "config", "--pkg-config-dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    paths = os.pathsep.join([*(str(folder / "lib/pkgconfig") for folder in prefix), titin])
    found = subprocess.run(
        ["pkg-config", *words], env=os.environ | {"PKG_CONFIG_PATH": paths}, capture_output=True, text=True, check=True
    )
    return shlex.split(found.stdout)


@pytest.mark.parametrize(
    ("package", "compiler", "source"),
    [("libmuscle", "c++", "echo"), ("libmuscle_mpi", "mpicxx", "ranks"), ("ymmsl", "c++", "names")],
)
def test_pkg_config(package: str, compiler: str, source: str, installed: Path, tmp_path: Path) -> None:
    needs("pkg-config", compiler)
    options = flags([installed], "--cflags", package), flags([installed], "--libs", package)
    command = [compiler, "-std=c++14", *options[0], HERE / f"{source}.cpp", "-o", tmp_path / source, *options[1]]
    subprocess.run(command, check=True)
    linked = subprocess.run(["ldd", tmp_path / source], capture_output=True, text=True, check=True).stdout
    assert ("libtitin.so" in linked) == (package != "ymmsl") and "not found" not in linked


def test_cmake(installed: Path, tmp_path: Path) -> None:
    needs("cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(test CXX)\nfind_package(libmuscle 0.10 REQUIRED)\n"
        f"add_executable(echo {HERE}/echo.cpp)\ntarget_link_libraries(echo libmuscle::libmuscle libmuscle::ymmsl)\n"
    )
    folders = [f"-Dlibmuscle_DIR={installed}/lib/cmake/libmuscle", f"-Dtitin_DIR={config('--cmake-dir')[0]}"]
    subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "build", *folders], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    assert (tmp_path / "build/echo").exists()


def test_modules_of_fortran(installed: Path, tmp_path: Path) -> None:
    needs("make", "pkg-config", "gfortran", "mpif90", "mpicxx")
    prefix, given = tmp_path / "modules", f"-I{installed}/include {shlex.join(config('--cflags'))}"
    command = ["make", "-C", installed / "fortran", f"PREFIX={prefix}", "MPI=1", f"HEADERS={given}"]
    subprocess.run([*command, f"LIBRARIES={shlex.join(config('--libs'))}"], check=True, capture_output=True)
    fortran = ROOT / "tests/adoption/fortran"
    modules = ["libmuscle_fortran", "ymmsl_fortran"]
    sources = [fortran / "record.f90", fortran / "echo.f90"]
    options = flags([prefix], "--cflags", *modules), flags([prefix], "--libs", *modules)
    subprocess.run(["gfortran", *options[0], *sources, "-o", "echo", *options[1]], cwd=tmp_path, check=True)
    ranks = flags([prefix], "--cflags", "libmuscle_mpi_fortran"), flags([prefix], "--libs", "libmuscle_mpi_fortran")
    subprocess.run(["mpif90", *ranks[0], fortran / "ranks.f90", "-o", "ranks", *ranks[1]], cwd=tmp_path, check=True)
    model = MODELS["values"]
    got = run(
        model, {name: [str(tmp_path / "echo")] for name in ("echo",)} | {"sender": [sender(tmp_path)]}, tmp_path / "run"
    )
    assert got["echo"].endswith("uses: int 26\n")


def test_the_page_is_true(tmp_path: Path) -> None:
    """All commands of the page, in one shell."""
    needs("make", "cmake", "pkg-config", "gfortran", "mpif90", "mpicxx")
    fortran = ROOT / "tests/adoption/fortran"
    shutil.copy(HERE / "echo.cpp", tmp_path / "reaction.cpp")
    shutil.copy(HERE / "record.hpp", tmp_path)
    program = "".join((fortran / name).read_text() for name in ("record.f90", "echo.f90"))
    (tmp_path / "reaction.f90").write_text(program)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(test CXX)\nfind_package(libmuscle REQUIRED)\n"
        "add_executable(reaction reaction.cpp)\ntarget_link_libraries(reaction libmuscle::libmuscle)\n"
    )
    commands = re.findall(r"^```sh\n(.*?)^```", (COMPAT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(commands) == 4
    env = os.environ | {"HOME": str(tmp_path), "PKG_CONFIG_PATH": ""}
    subprocess.run(["sh", "-e"], input="".join(commands), text=True, check=True, cwd=tmp_path, env=env)
    assert (tmp_path / "reaction").exists() and (tmp_path / "build/reaction").exists()


def sender(folder: Path) -> str:
    program = folder / "sender"
    include = [f"-I{COMPAT}/cpp/include", *config("--cflags")]
    subprocess.run(["c++", "-std=c++14", *include, HERE / "sender.cpp", "-o", program, *config("--libs")], check=True)
    return str(program)
