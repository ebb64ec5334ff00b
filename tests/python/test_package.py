"""The package serves other build systems, and shows its parts."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import titin
from packaging.utils import parse_wheel_filename
from titin import _core, errors, fields

from ..conftest import ROOT, config

HEADER = ROOT / "crates/capi/include/titin.h"
HEADERS = [HEADER, HEADER.with_name("titin_path.h")]
SYS = ROOT / "bindings/python/src/sys.rs"

PROGRAM = """
#include <stdio.h>
#include <titin.h>
int main(void) { puts(titin_version()); return 0; }
"""


def run(*command: object, folder: Path) -> str:
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("libraries", ["--libs", "--static"])
def test_a_program_is_built_by_the_flags(tmp_path, libraries):
    (tmp_path / "program.c").write_text(PROGRAM)
    flags = [*config("--cflags"), "program.c", *config(libraries)]
    run("cc", *flags, "-o", "program", folder=tmp_path)
    assert run(tmp_path / "program", folder=tmp_path) == _core.__version__


def test_pkg_config_knows_the_flags(tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    file = Path(*config("--pkg-config-dir")) / "titin.pc"
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
    run("cmake", "-B", "build", f"-Dtitin_DIR={config('--cmake-dir')[0]}", folder=tmp_path)
    run("cmake", "--build", "build", folder=tmp_path)
    for program in ("program", "whole"):
        assert run(tmp_path / "build" / program, folder=tmp_path) == _core.__version__


def test_the_stubs_name_what_there_is():
    tree = ast.parse((ROOT / "bindings/python/titin/_core.pyi").read_text())
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or issubclass(getattr(_core, node.name), Exception):
            continue
        stubbed = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
        real = {name for name, _ in inspect.getmembers(getattr(_core, node.name)) if not name.startswith("_")}
        assert {name for name in stubbed if not name.startswith("_")} == real, node.name


def test_help_shows_what_the_stubs_say():
    tree = ast.parse((ROOT / "bindings/python/titin/_core.pyi").read_text())
    shown = 0
    for node in (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)):
        here = getattr(_core, node.name)
        members = [member for member in getattr(node, "body", []) if isinstance(member, ast.FunctionDef)]
        for member in [node, *members]:
            text = ast.get_docstring(member)
            if text is not None:
                real = here if member is node else inspect.getattr_static(here, member.name)
                assert inspect.getdoc(real) == text, (node.name, member.name)
                shown += 1
    assert shown > 50


def test_the_declarations_are_those_of_the_header():
    def shapes(text: str, pattern: str) -> dict[str, int]:
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        found = {}
        for name, arguments in re.findall(pattern, text, re.DOTALL):
            arguments = re.sub(r"\([^()]*\)", "", arguments).strip().rstrip(",")
            found[name] = 0 if arguments in ("", "void") else arguments.count(",") + 1
        return found

    header = shapes(
        "".join(path.read_text() for path in HEADERS), r"\b(titin_\w+)\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\);"
    )
    ours = shapes(SYS.read_text(), r"pub fn (titin_\w+)\(([^()]*)\)")
    assert len(ours) > 50
    for name, count in ours.items():
        assert header.get(name) == count, name


def numbers() -> dict[str, int]:
    """The enumerators of titin.h."""
    found = re.findall(r"\b(TITIN_\w+) = (\d+)", HEADER.read_text())
    assert len(found) > 50
    return {name: int(number) for name, number in found}


def test_the_numbers_are_those_of_the_header():
    header, ours = numbers(), SYS.read_text()
    constants = re.findall(r"pub const (\w+): c_int = (\d+);", ours)
    assert len(constants) > 15
    for name, number in constants:
        # BOOL is a kind there, and TITIN_BOOL a type of elements.
        places = [f"TITIN_{family}_{name}" for family in ("ERROR", "KIND")] + [f"TITIN_{name}"]
        assert int(number) == next(header[place] for place in places if place in header), name
    assert "#define TITIN_NO_SLOT (-1)" in HEADER.read_text() and "pub const NO_SLOT: c_int = -1;" in ours


def test_the_lists_are_in_the_order_of_the_header():
    def listed(name: str) -> list[str]:
        (text,) = re.findall(rf"pub const {name}: \[&str; \d+\] = \[(.*?)\];", SYS.read_text(), re.DOTALL)
        return re.findall(r'"(\w+)"', text)

    header = numbers()
    operators = sorted((f"TITIN_{name}" for name in ("F_INIT", "O_I", "S", "O_F")), key=header.__getitem__)
    assert [f"TITIN_{name.upper()}" for name in listed("OPERATORS")] == operators
    assert [header[name] for name in operators] == [1, 2, 3, 4]


def test_errors_have_the_same_numbers_everywhere():
    """The errors in the header, in Python, in C++ and in the table of the docs."""
    header = {name: number for name, number in numbers().items() if name == "TITIN_OK" or "_ERROR_" in name}
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|([^|]*)\|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)
    assert {name: int(number) for number, name, _ in rows} == header
    # 16 is no error.
    assert len(errors.BY_NUMBER) == len(header) + 1
    folder = ROOT / "bindings/cpp/include/titin"
    cpp = dict(re.findall(r"struct (\w+) : detail::Kinded<(\w+)>", (folder / "error.hpp").read_text()))
    for number, name, classes in rows[1:]:
        python, *others = re.findall(r"`(\w+)`", classes)
        assert errors.BY_NUMBER[int(number)].__name__ == python
        assert cpp[(others or [python])[0]] == name
    assert errors.BY_NUMBER[0] is errors.Error
    assert len(cpp) == len(rows) - 1


@pytest.mark.parametrize(
    ("owned", "text"),
    [
        (titin.Boxes([np.s_[0:5, 0:6]]), "end outside the array of 4 × 6"),
        (titin.Boxes([np.s_[0:4:2, 0:6]]), "no steps"),
        (titin.Grid((2,)), "a grid of 1 dimensions"),
        (titin.Owner(lambda i, j: -1), "the owner function gave -1"),
        (titin.Grid((1, 2), "odd"), "no way to spread"),
    ],
)
def test_what_no_decomposition_is_has_an_error_of_titins(owned, text):
    with pytest.raises(titin.UsageError, match=text):
        fields.describe(owned, (4, 6), "C", 0, 2)


def test_all_names_are_listed():
    assert {"run", "Array", "LogHandler"} <= set(dir(titin))
    assert all(hasattr(titin, name) for name in dir(titin))


def test_the_name_of_a_wheel_for_this_machine_says_so():
    """The wheel of `make build`, which is linked with this machine's libraries. pip installs it all the same."""
    spec = importlib.util.spec_from_file_location("wheel", ROOT / "tools" / "wheel.py")
    wheel = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(wheel)
    name = "titin-0.1.0-cp311-abi3-linux_x86_64.whl"
    own = wheel.local(name)
    assert "this_machine_only" in own
    project, version, _, tags = parse_wheel_filename(own)
    assert (project, str(version), tags) == ("titin", "0.1.0", parse_wheel_filename(name)[-1])
