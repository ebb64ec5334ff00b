"""The Debian packages, without a build of them: each file of the wheel that is installed here, put where Debian has it,
is in one package."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ..conftest import ROOT, needs
from .test_recipes import VERSION

DEBIAN = ROOT / "packaging/debian"
MULTIARCH = "x86_64-linux-gnu"
LIB = f"usr/lib/{MULTIARCH}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder debian/tmp of a build."""
    needs("chrpath")
    folder = tmp_path_factory.mktemp("debian")
    shutil.copytree(DEBIAN, folder / "debian")
    wheels = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "wheels"
    subprocess.run(["debian/arrange", wheels, "debian/tmp", MULTIARCH], cwd=folder, check=True)
    return folder / "debian/tmp"


@pytest.fixture(scope="module")
def packages(tree: Path) -> dict[str, set[str]]:
    """The files and links of each package, as dh_install takes them."""
    found: dict[str, set[str]] = {}
    for listed in DEBIAN.glob("*.install"):
        files = found.setdefault(listed.stem, set())
        for line in listed.read_text().split():
            taken = list(tree.glob(line))
            assert taken, f"{listed.name}: there is no {line}"
            for path in taken:
                inside = [path] if path.is_symlink() or path.is_file() else path.rglob("*")
                files |= {str(one.relative_to(tree)) for one in inside if one.is_symlink() or one.is_file()}
    return found


def test_every_file_is_in_one_package(tree: Path, packages: dict[str, set[str]]) -> None:
    there = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_symlink() or path.is_file()}
    often = Counter(file for files in packages.values() for file in files)
    assert there == set(often) and set(often.values()) == {1}


def test_each_package_has_what_its_users_look_for(packages: dict[str, set[str]]) -> None:
    assert packages["libtitin0"] == {f"{LIB}/libtitin.so.0", f"{LIB}/libtitin.so.{VERSION}"}
    manuals = {file for file in packages["titin"] if file.startswith("usr/share/man/man1/titin")}
    assert "usr/share/man/man1/titin-run.1" in manuals
    assert packages["titin"] - manuals == {
        "usr/bin/titin",
        f"{LIB}/titin/lib/titin-host",
        f"{LIB}/titin/lib/titin-relayd",
    }
    assert all(file.startswith("usr/lib/python3/dist-packages/titin") for file in packages["python3-titin"])
    assert not [file for file in packages["python3-titin"] if file.endswith((".h", ".a", ".f90", "RECORD"))]
    for file in (
        f"{LIB}/libtitin.a",
        f"{LIB}/libtitin.so",
        f"{LIB}/cmake/titin/titin-config.cmake",
        f"{LIB}/pkgconfig/titin.pc",
        "usr/include/titin/titin.h",
        "usr/include/titin/titin/array.hpp",
        "usr/share/titin/fortran/titin.f90",
        "usr/share/titin/muscle3/include/libmuscle/libmuscle.hpp",
        f"{LIB}/titin/muscle2/lib/libmuscle2.a",
        f"{LIB}/titin/muscle2/include/muscle2/cppmuscle.hpp",
    ):
        assert file in packages["libtitin-dev"]


def test_files_for_any_machine_are_the_same_on_each(tree: Path) -> None:
    """Multi-Arch: same lets packages of two machines share a path only if its file is the same."""
    for folder in ("usr/include", "usr/share"):
        for path in (tree / folder).rglob("*"):
            assert path.is_dir() or MULTIARCH.encode() not in path.read_bytes(), f"{path} names the machine"


def test_the_command_finds_the_folder_by_its_links(tree: Path) -> None:
    """`titin config` answers with the folder that looks like the one of a wheel."""
    own = tree / LIB / "titin"
    for inside in ("include/titin.h", "lib/libtitin.a", "lib/libtitin.so", "lib/titin-host", "fortran/titin.f90"):
        assert (own / inside).resolve(strict=True).is_relative_to(tree.resolve())
    done = subprocess.run([tree / "usr/bin/titin", "config", "--prefix"], capture_output=True, text=True, env={})
    assert Path(done.stdout.strip()) == own, done.stderr
    for library in ("muscle2", "muscle3"):
        command = [tree / "usr/bin/titin", "config", "--compat", library, "--fortran", "--cmake-dir"]
        for path in subprocess.run(command, capture_output=True, text=True, env={}, check=True).stdout.split():
            assert Path(path).resolve(strict=True).is_relative_to(tree.resolve())


def test_cmake_and_pkg_config_are_told_where_debian_has_all(tree: Path) -> None:
    config = (tree / LIB / "cmake/titin/titin-config.cmake").read_text()
    assert f'set(_titin_prefix "/{LIB}/titin")' in config and f'IMPORTED_LOCATION "/{LIB}/libtitin.so"' in config
    assert (
        config.count('INTERFACE_INCLUDE_DIRECTORIES "/usr/include/titin"') == 2
        and "CMAKE_CURRENT_LIST_DIR" not in config
    )
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "titin"],
        env=os.environ | {"PKG_CONFIG_PATH": str(tree / LIB / "pkgconfig")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["-I/usr/include/titin", "-ltitin"]
