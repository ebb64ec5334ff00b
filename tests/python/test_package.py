"""The package serves other build systems, and says what it has."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
from pathlib import Path

import pytest
from titin import _core

from .conftest import TITIN

ROOT = Path(__file__).parents[2]

PROGRAM = """
#include <stdio.h>
#include <titin.h>
int main(void) { puts(titin_version()); return 0; }
"""


def config(*options: str) -> str:
    return subprocess.run([TITIN, "config", *options], capture_output=True, text=True, check=True).stdout.strip()


def run(*command: object, folder: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("libraries", ["--libs", "--static"])
def test_a_program_is_built_by_the_flags(tmp_path, libraries):
    (tmp_path / "program.c").write_text(PROGRAM)
    flags = [*config("--cflags").split(), "program.c", *config(libraries).split()]
    run("cc", *flags, "-o", "program", folder=tmp_path)
    assert run(tmp_path / "program", folder=tmp_path) == _core.__version__


def test_pkg_config_knows_the_flags(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    file = Path(config("--pkg-config-dir")) / "titin.pc"
    flags = run("pkg-config", "--cflags", "--libs", file, folder=tmp_path).split()
    run("cc", "program.c", *flags, "-o", "program", folder=tmp_path)
    assert run(tmp_path / "program", folder=tmp_path) == _core.__version__


def test_cmake_finds_the_package(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(test C)\nfind_package(titin 0.1 REQUIRED)\n"
        "add_executable(program program.c)\ntarget_link_libraries(program titin::titin)\n"
        "add_executable(whole program.c)\ntarget_link_libraries(whole titin::titin_static)\n"
    )
    run("cmake", "-B", "build", f"-Dtitin_DIR={config('--cmake-dir')}", folder=tmp_path)
    run("cmake", "--build", "build", folder=tmp_path)
    for program in ("program", "whole"):
        assert run(tmp_path / "build" / program, folder=tmp_path) == _core.__version__


def test_the_stubs_name_what_there_is():
    tree = ast.parse((ROOT / "bindings/python/titin/_core.pyi").read_text())
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        stubbed = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
        real = {name for name, _ in inspect.getmembers(getattr(_core, node.name)) if not name.startswith("_")}
        assert {name for name in stubbed if not name.startswith("_")} == real, node.name


def test_the_declarations_are_those_of_the_header():
    def shapes(text: str, pattern: str) -> dict[str, int]:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        found = {}
        for name, arguments in re.findall(pattern, text, re.DOTALL):
            arguments = re.sub(r"\([^()]*\)", "", arguments).strip().rstrip(",")
            found[name] = 0 if arguments in ("", "void") else arguments.count(",") + 1
        return found

    header = shapes(
        (ROOT / "crates/capi/include/titin.h").read_text(), r"\b(titin_\w+)\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\);"
    )
    ours = shapes((ROOT / "bindings/python/src/sys.rs").read_text(), r"pub fn (titin_\w+)\(([^()]*)\)")
    assert len(ours) > 50
    for name, count in ours.items():
        assert header.get(name) == count, name
