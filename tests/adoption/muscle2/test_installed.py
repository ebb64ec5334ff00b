"""MUSCLE 2's interfaces as build systems find them: pkg-config, CMake, the static library."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

from ...conftest import TITIN, config, needs

HERE = Path(__file__).resolve().parent


def answer(*words: str) -> str:
    return subprocess.run([TITIN, "config", *words], capture_output=True, text=True, check=True).stdout.strip()


def refuses_to_join(program: Path) -> None:
    """A program that works, outside of a run, ends with a text that says so."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TITIN_")}
    done = subprocess.run([program], capture_output=True, text=True, env=environment)
    assert done.returncode == 1 and "titin run" in done.stderr, done.stderr


def test_pkg_config(tmp_path):
    needs("pkg-config", "cc")
    environment = os.environ | {"PKG_CONFIG_PATH": answer("--compat", "muscle2", "--pkg-config-dir")}
    command = ["pkg-config", "--cflags", "--libs", "muscle2"]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    flags = [*shlex.split(found), f"-Wl,-rpath,{answer('--lib-dir')}"]
    subprocess.run(["cc", HERE / "relay.c", "-o", tmp_path / "relay", *flags], check=True)
    refuses_to_join(tmp_path / "relay")


def test_cmake(tmp_path):
    needs("cmake")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(test C CXX)\nfind_package(muscle2 REQUIRED)\n"
        f"add_executable(relay {HERE}/relay.c)\nadd_executable(bounce {HERE}/bounce.cpp)\n"
        "target_link_libraries(relay muscle2::muscle2)\ntarget_link_libraries(bounce muscle2::muscle2)\n"
    )
    places = [
        f"-Dmuscle2_DIR={answer('--compat', 'muscle2', '--cmake-dir')}",
        f"-Dtitin_DIR={answer('--cmake-dir')}",
    ]
    for words in (["-S", ".", "-B", "build", *places], ["--build", "build"]):
        subprocess.run(["cmake", *words], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    refuses_to_join(tmp_path / "build/relay")


def test_the_static_library(tmp_path):
    flags = config("--compat", "muscle2", "--cflags")
    libraries = config("--compat", "muscle2", "--static")
    subprocess.run(["cc", *flags, HERE / "relay.c", "-o", tmp_path / "relay", *libraries], check=True)
    linked = subprocess.run(["ldd", tmp_path / "relay"], capture_output=True, text=True, check=True).stdout
    assert "libtitin" not in linked
    refuses_to_join(tmp_path / "relay")


def test_several_files_of_one_program_share_the_instance(tmp_path):
    """Headers of C and C++ together, in two files."""
    (tmp_path / "one.cpp").write_text(
        "#include <cstdio>\n#include <muscle2/cmuscle.h>\n#include <muscle2/cppmuscle.hpp>\nvoid two();\n"
        "int main() { try { two(); } catch (const muscle::muscle_exception &e) { std::puts(e.what()); } }\n"
    )
    (tmp_path / "two.cpp").write_text(
        "#include <muscle2/cppmuscle.hpp>\n#include <muscle2/util/logger.hpp>\n"
        "void two() { muscle::env::will_stop(); }\n"
    )
    flags, libraries = (config("--compat", "muscle2", option) for option in ("--cflags", "--libs"))
    command = ["c++", *flags, tmp_path / "one.cpp", tmp_path / "two.cpp", "-o", tmp_path / "program", *libraries]
    subprocess.run(command, check=True)
    done = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    assert done.stdout == "will_stop is called before MUSCLE_Init, or env::init\n"
