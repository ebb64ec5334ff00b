"""Other build systems find all headers, libraries and modules: CMake and pkg-config, in C, C++ and Fortran, as
docs/linking.md says."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ..conftest import ROOT, config
from . import test_exchange
from .conftest import HERE, run

PAGE = (ROOT / "docs/linking.md").read_text()
VERSION = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
SERIES, PATCH = VERSION.rsplit(".", 1)


def configure(folder: Path, lists: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Has CMake read source lists, with titin where ``titin config`` says."""
    (folder / "CMakeLists.txt").write_text(lists)
    command = ["cmake", "-B", "build", f"-Dtitin_DIR={config('--cmake-dir')[0]}", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def needed(program: Path) -> str:
    """The shared libraries that a program asks for."""
    return subprocess.run(["objdump", "-p", program], capture_output=True, text=True, check=True).stdout


def test_cmake_builds_c_cpp_and_fortran(tmp_path: Path) -> None:
    """With the source lists of the page."""
    lists = re.search(r"```cmake\n(.*?)```", PAGE, re.DOTALL)
    assert lists
    sources = {"macro": "cpp", "meso": "c", "micro": "f90"}
    for program, language in sources.items():
        shutil.copy(HERE / f"exchange.{language}", tmp_path / f"{program}.{language}")
    done = configure(
        tmp_path, lists[1], *(f"-DCMAKE_{language}_FLAGS=-I{HERE} -D_GNU_SOURCE" for language in ("C", "CXX"))
    )
    assert done.returncode == 0, done.stderr
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    build = tmp_path / "build"
    assert {name: "libtitin.so" in needed(build / name) for name in sources} == {
        "macro": True,
        "meso": False,
        "micro": True,
    }
    for left, right in itertools.pairwise(["macro", "meso", "micro", "macro"]):
        (tmp_path / left).mkdir()
        run(tmp_path / left, test_exchange.MODEL.format(left=build / left, right=build / right, env=""))


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        ("", True),
        (SERIES, True),
        (VERSION, True),
        (f"{VERSION} EXACT", True),
        (f"{SERIES}.{int(PATCH) + 1}", False),
        ("0.0.1", False),
        ("0.99", False),
        ("1.0", False),
    ],
)
def test_cmake_takes_the_same_series_and_no_newer_version(asked: str, taken: bool, tmp_path: Path) -> None:
    lists = f"cmake_minimum_required(VERSION 3.20)\nproject(asks C)\nfind_package(titin {asked} REQUIRED)\n"
    done = configure(tmp_path, lists + 'message(STATUS "found ${titin_VERSION}")\n')
    assert (done.returncode == 0) == taken, done.stdout + done.stderr
    assert (f"found {VERSION}\n" in done.stdout) == taken
    assert ("titin-config.cmake, version: " + VERSION in done.stderr) != taken


@pytest.fixture
def pkg_config(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKG_CONFIG_PATH", config("--pkg-config-dir")[0])


@pytest.mark.usefixtures("pkg_config")
def test_pkg_config_serves_c_cpp_and_fortran(tmp_path: Path) -> None:
    """By the commands of the page."""
    commands = re.search(r"```sh\n(export PKG_CONFIG_PATH.*?)```", PAGE, re.DOTALL)
    assert commands
    lines = commands[1].splitlines()
    assert [line.split()[0] for line in lines] == ["export", "cc", "c++", "gfortran"]
    for line, language in zip(lines[1:], ("c", "cpp", "f90")):
        shutil.copy(HERE / f"exchange.{language}", tmp_path / f"program.{language}")
        line = line.replace("-o program", f"-I{HERE} -D_GNU_SOURCE -o {language}")
        subprocess.run(["sh", "-ec", f"{lines[0]}\n{line} -lm"], cwd=tmp_path, check=True)
    for left, right in itertools.pairwise(["c", "cpp", "f90", "c"]):
        (tmp_path / f"from-{left}").mkdir()
        model = test_exchange.MODEL.format(left=tmp_path / left, right=tmp_path / right, env="")
        run(tmp_path / f"from-{left}", model)


@pytest.mark.usefixtures("pkg_config")
@pytest.mark.parametrize(("asked", "there"), [(f">= {SERIES}", True), (f"= {VERSION}", True), (">= 0.99", False)])
def test_pkg_config_knows_the_version(asked: str, there: bool) -> None:
    done = subprocess.run(["pkg-config", "--exists", f"titin {asked}"], env=os.environ, check=False)
    assert (done.returncode == 0) == there
