"""The two ends of a path: programs in each language, each with each."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import HERE, Build

LANGUAGES = ["c", "cpp", "f90", "py"]


def make_key(folder: Path) -> Path:
    """A new key."""
    key = folder / "key"
    subprocess.run([TITIN, "path", "key", key], check=True, capture_output=True)
    return key


def command(build: Build, language: str) -> list[str | Path]:
    """The program of a language."""
    return [sys.executable, HERE / "paths.py"] if language == "py" else [build("paths", language)]


def meet(key: Path, listener: list[str | Path], opener: list[str | Path], way: str = "", **environment: str) -> None:
    """Runs both ends; both must end well. ``way`` comes before the address."""
    environment["TITIN_PATH_KEY"] = str(key)
    with subprocess.Popen([*listener, "listen"], env=environment, stdout=subprocess.PIPE, text=True) as listening:
        assert listening.stdout
        try:
            address = listening.stdout.readline().strip()
            subprocess.run([*opener, way + address], env=environment, timeout=60, check=True)
            assert listening.wait(timeout=60) == 0
        finally:
            listening.kill()


@pytest.mark.parametrize("listener", LANGUAGES)
@pytest.mark.parametrize("opener", LANGUAGES)
def test_two_ends_of_any_language(build: Build, tmp_path: Path, listener: str, opener: str) -> None:
    meet(make_key(tmp_path), command(build, listener), command(build, opener))


@pytest.mark.parametrize(("listener", "opener"), [("c", "cpp"), ("cpp", "f90"), ("f90", "py"), ("py", "c")])
def test_two_ends_meet_by_a_session_as_between_hosts(build: Build, tmp_path: Path, listener: str, opener: str) -> None:
    meet(make_key(tmp_path), command(build, listener), command(build, opener), "session:", PATHS_SESSION="1")


def test_wrong_use_is_refused_and_the_path_goes_on(build: Build, tmp_path: Path) -> None:
    environment = {"TITIN_PATH_KEY": str(make_key(tmp_path))}
    subprocess.run([build("paths_wrong", "c"), "300"], env=environment, timeout=120, check=True)
