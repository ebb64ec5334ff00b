"""Other build systems find all headers and modules: CMake with C++ and Fortran, pkg-config with C++."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..conftest import config
from . import test_exchange
from .conftest import HERE, run

LISTS = f"""\
cmake_minimum_required(VERSION 3.20)
project(exchange CXX Fortran)
find_package(titin 0.1 REQUIRED)
set(CMAKE_CXX_STANDARD 17)
add_executable(cpp {HERE}/exchange.cpp)
target_link_libraries(cpp titin::titin)
add_executable(fortran {HERE}/exchange.f90)
target_link_libraries(fortran titin::fortran)
"""


def test_cmake_builds_cpp_and_fortran(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(LISTS)
    place = f"-Dtitin_DIR={config('--cmake-dir')[0]}"
    subprocess.run(["cmake", "-B", "build", place], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    build = tmp_path / "build"
    run(tmp_path, test_exchange.MODEL.format(left=build / "cpp", right=build / "fortran", env=""))


def test_pkg_config_serves_cpp(tmp_path: Path) -> None:
    file = Path(config("--pkg-config-dir")[0]) / "titin.pc"
    done = subprocess.run(["pkg-config", "--cflags", "--libs", file], capture_output=True, text=True, check=True)
    program = tmp_path / "cpp"
    command = ["c++", "-std=c++17", HERE / "exchange.cpp", *done.stdout.split(), "-o", program]
    subprocess.run(command, check=True)
    run(tmp_path, test_exchange.MODEL.format(left=program, right=program, env=""))
