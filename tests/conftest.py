"""What the tests share: what must be there, copies of folders to work in, and managers for programs started by hand."""

from __future__ import annotations

import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TOOLS = Path(sys.executable).parent
TITIN = TOOLS / "titin"
WATCHDOG = 300  # seconds; only a hang reaches it
PROFILE = os.environ.get("PROFILE", "dev")

# As in an activated virtual environment: `titin` and `python3` are those beside the running Python.
os.environ["PATH"] = f"{TOOLS}{os.pathsep}{os.environ['PATH']}"

# Open MPI wants root, which tests are in a container, to say that it means it.
os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Whoever is started in the background by a script is deaf to Ctrl-C, and so would be the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def config(*wanted: str) -> list[str]:
    """What ``titin config`` prints."""
    done = subprocess.run([TITIN, "config", *wanted], capture_output=True, text=True, check=True)
    return shlex.split(done.stdout)


def cargo_build(*options: str) -> dict[str, str]:
    """Builds programs of the Rust code, and returns their paths by their names.

    They are built with the same flags as by `make test-rust`, which has built most of them already: with those of its
    package alone, all that a program depends on would be compiled anew.
    """
    crates = os.environ.get("CRATES", "--workspace --exclude titin-python").split()
    flags = ["--locked", "--profile", PROFILE]
    command = ["cargo", "build", "-q", *crates, *flags, *options, "--message-format=json"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=WATCHDOG * 4)
    built = [found for found in map(json.loads, done.stdout.splitlines()) if found.get("executable")]
    return {found["target"]["name"]: found["executable"] for found in built}


def example(name: str) -> str:
    """An example program of the Rust code."""
    return cargo_build("--example", name)[name]


def needs(*programs: str | Path) -> None:
    """Leaves a test out where a program is missing; not where all tests count."""
    for program in programs:
        if shutil.which(program) is None:
            assert "CI" not in os.environ, f"there is no {program}; make test-packages installs one"
            pytest.skip(f"there is no {program} here")


def needs_packages(*packages: str) -> None:
    """Leaves the tests of a module out where a Python package is missing; not where all tests count."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            assert "CI" not in os.environ, f"there is no {package}; make test-packages installs it"
            pytest.skip(f"there is no {package} here", allow_module_level=True)


def muscle3(version: str) -> Path:
    """The folder that has a release of MUSCLE3, for PYTHONPATH: ``0.10`` or ``0.11``."""
    folder = Path(os.environ.get(f"TITIN_MUSCLE3_{version.replace('.', '_')}", ROOT / f".venv/muscle3-{version}"))
    assert (folder / "libmuscle").exists(), f"MUSCLE3 {version} is not in {folder}: make test-packages"
    return folder


def muscle3_module(path: str) -> Any:
    """A module of MUSCLE3 0.11 by its file, since the environment has a libmuscle of titin's."""
    spec = importlib.util.spec_from_file_location(f"muscle3_{Path(path).stem}", muscle3("0.11") / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def begin_and_parent(process: Path) -> tuple[int, int]:
    """When a process of ``/proc`` began, in ticks, and its parent. Numbers of processes begin anew at some time."""
    # The name of the program may have blanks and brackets.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    return int(fields[19]), int(fields[1])


def may_leave() -> bool:
    """Whether this user may make namespaces."""
    command = ["unshare", "--net", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def configuration(run: Path) -> dict[str, Any]:
    """The description that a run was of, all files merged."""
    merged: dict[str, Any] = yaml.safe_load((run / "configuration.ymmsl").read_text())
    return merged


def in_force(run: Path, *files: Path) -> None:
    """Fails if a run was not as these files of description say, since a later one has overridden them."""
    ran = configuration(run)
    for file in files:
        given = yaml.safe_load(file.read_text())
        for part in ("settings", "resources", "programs"):
            for name, value in given.get(part, {}).items():
                found = ran[part].get(name)
                if isinstance(value, dict) and "executable" in value:
                    # The configuration has paths that can be followed from anywhere.
                    value = value | {"executable": os.path.realpath(file.parent / value["executable"])}
                    found = found | {"executable": os.path.realpath(found["executable"])}
                assert found == value, f"{file.name}: {part}: {name}"
        assert set(given.get("models", {})) <= set(ran["models"]), file.name


class Copy:
    """A copy of a folder of the tree, so that this stays clean, and the commands a reader types in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, name: str, factory: pytest.TempPathFactory) -> Self:
        """The folder of this name, without what was built in it."""
        folder = factory.mktemp("copy") / Path(name).name
        return cls(shutil.copytree(ROOT / name, folder, ignore=shutil.ignore_patterns("build", "__pycache__")))

    def call(self, *command: object, folder: str = "", status: int = 0, **environment: str) -> str:
        """What a command says; if it ends with another status, all of that is shown."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.folder / folder,
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=WATCHDOG,
        )
        assert done.returncode == status, f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout}"
        return done.stdout


class Manager:
    """``titin manager`` in a folder, for programs that are started by hand."""

    def __init__(self, folder: Path, model: str) -> None:
        (folder / "model.ymmsl").write_text(model)
        self.folder = folder
        self.directory = folder / "run"
        self.connection = self.directory / "connection.json"
        self.process = subprocess.Popen(
            [TITIN, "manager", "model.ymmsl", "--run-dir", self.directory],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        while not self.connection.exists():
            assert self.process.poll() is None, self.process.communicate()[0]
            time.sleep(0.01)

    def start(self, *command: object, stderr: Any = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
        """Starts a program that finds the run by its environment."""
        return subprocess.Popen(
            [str(word) for word in command],
            cwd=self.folder,
            env=os.environ | {"TITIN_MANAGER": str(self.connection)} | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if stderr == subprocess.PIPE else None,
            stderr=stderr,
            text=True,
        )

    def run(self, *command: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end."""
        with self.start(*command, **environment) as process:
            output, errors = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, output, errors)

    def wait(self) -> tuple[int, str]:
        """Its exit code, once it has ended, and what it has printed."""
        output = self.process.communicate()[0]
        return self.process.returncode, output


Manage = Callable[..., Manager]


@pytest.fixture
def manage(tmp_path: Path) -> Iterator[Manage]:
    """Starts the manager of a model, in a folder of its own if one is named."""
    managers: list[Manager] = []

    def start(model: str, name: str = "") -> Manager:
        (tmp_path / name).mkdir(exist_ok=True)
        managers.append(Manager(tmp_path / name, model))
        return managers[-1]

    yield start
    for manager in managers:
        if manager.process.poll() is None:
            manager.process.kill()
            manager.process.communicate()
