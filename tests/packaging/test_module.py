"""The module file, in Environment Modules: after `module load titin` all is found, after `module unload` nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import ROOT, config
from .test_recipes import VERSION

INIT = Path("/usr/share/modules/init/bash")
MODULES = ROOT / "packaging/modulefiles"


def shell(commands: str, home: str) -> subprocess.CompletedProcess[str]:
    """Runs commands in a shell that has the modules of the tree, and no other trace of titin."""
    if not INIT.exists():
        assert not os.environ.get("CI"), "environment-modules is missing"
        pytest.skip("environment-modules is not installed")
    env = {"HOME": "/", "PATH": "/usr/bin:/bin", "TITIN_HOME": home}
    text = f"set -e\n. {INIT}\nmodule use {MODULES}\n{commands}"
    return subprocess.run(["bash", "-c", text], env=env, capture_output=True, text=True, check=False)


def test_a_shell_finds_all_with_the_module(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(with_module C)\nfind_package(titin 0.1 REQUIRED)\n"
        'message(STATUS "found ${titin_DIR}")\n'
    )
    done = shell(
        "module load titin\ntitin --version\ntitin config --prefix\npkg-config --modversion titin\n"
        f"cmake -S {tmp_path} -B {tmp_path}/build | sed -n 's/^-- found //p'\n"
        "python3 -c 'import titin; print(titin.__file__)'\necho \"$PYTHONPATH\"",
        sys.prefix,
    )
    assert done.returncode == 0, done.stderr
    prefix = config("--prefix")[0]
    assert done.stdout.splitlines() == [
        f"titin {VERSION}",
        prefix,
        VERSION,
        f"{prefix}/lib/cmake/titin",
        f"{prefix}/__init__.py",
        str(Path(prefix).parent),
    ]


def test_nothing_stays_when_it_is_unloaded() -> None:
    names = "$PATH,$PKG_CONFIG_PATH,$CMAKE_PREFIX_PATH,$PYTHONPATH"
    done = shell(f'echo "{names}"\nmodule load titin\nmodule unload titin\necho "{names}"', sys.prefix)
    before, after = done.stdout.splitlines()
    assert before == after, done.stderr


def test_a_folder_without_titin_is_named(tmp_path: Path) -> None:
    done = shell("module load titin || true\ntype titin", str(tmp_path))
    assert f"no titin in {tmp_path}" in done.stderr and done.returncode != 0


def test_the_file_is_named_after_the_version() -> None:
    assert [file.name for file in (MODULES / "titin").iterdir()] == [VERSION]
