"""Other build systems find all headers and modules: CMake with C++ and Fortran, pkg-config with C++."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from ..conftest import ROOT, config
from . import test_exchange
from .conftest import HERE, run


def test_cmake_builds_cpp_and_fortran(tmp_path: Path) -> None:
    """With the source lists of docs/building.md."""
    lists = re.search(r"```cmake\n(.*?)```", (ROOT / "docs/building.md").read_text(), re.DOTALL)
    assert lists
    (tmp_path / "CMakeLists.txt").write_text(lists[1])
    shutil.copy(HERE / "exchange.cpp", tmp_path / "macro.cpp")
    shutil.copy(HERE / "exchange.f90", tmp_path / "micro.f90")
    options = [f"-Dtitin_DIR={config('--cmake-dir')[0]}", f"-DCMAKE_CXX_FLAGS=-I{HERE}"]
    subprocess.run(["cmake", "-B", "build", *options], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", "build"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    build = tmp_path / "build"
    run(tmp_path, test_exchange.MODEL.format(left=build / "macro", right=build / "micro", env=""))


def test_pkg_config_serves_cpp(tmp_path: Path) -> None:
    command = ["pkg-config", "--cflags", "--libs", "titin"]
    found = os.environ | {"PKG_CONFIG_PATH": config("--pkg-config-dir")[0]}
    done = subprocess.run(command, env=found, capture_output=True, text=True, check=True)
    program = tmp_path / "cpp"
    command = ["c++", "-std=c++17", HERE / "exchange.cpp", *done.stdout.split(), "-o", program]
    subprocess.run(command, check=True)
    run(tmp_path, test_exchange.MODEL.format(left=program, right=program, env=""))
