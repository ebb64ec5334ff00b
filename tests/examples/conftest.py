"""The examples, run as their READMEs say, in a copy so that the tree stays clean."""

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WATCHDOG = 300  # seconds; only a hang reaches it


class Examples:
    """A copy of examples/ and the commands a reader types in it."""

    def __init__(self, root):
        self.root = root

    def call(self, *command, folder):
        """Runs a command in an example's folder; a failure shows all that it said."""
        done = subprocess.run(
            [str(word) for word in command],
            cwd=self.root / folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WATCHDOG,
        )
        assert done.returncode == 0, f"{' '.join(map(str, command))} gave {done.returncode}:\n{done.stdout}"
        return done.stdout

    def titin(self, *files, folder, run):
        """`titin run` of some files; the run directory."""
        run_dir = self.root / folder / "build" / run
        self.call("titin", "run", *files, "--run-dir", run_dir, folder=folder)
        return run_dir

    @contextlib.contextmanager
    def module(self, folder, name):
        """A Python module of an example."""
        sys.path.insert(0, str(self.root / folder))
        try:
            yield importlib.import_module(name)
        finally:
            sys.path.pop(0)
            sys.modules.pop(name, None)


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy") / "examples"
    shutil.copytree(ROOT / "examples", root, ignore=shutil.ignore_patterns("build", "__pycache__"))
    return Examples(root)


@pytest.fixture(scope="session")
def mpi():
    """Open MPI, for examples that are parallel. Root, which tests are in a container, has to say that it means it."""
    commands = ("mpicc", "mpirun.openmpi")
    missing = [command for command in commands if shutil.which(command) is None]
    if missing:
        assert "CI" not in os.environ, f"there is no {missing[0]}; make test-python installs one"
        pytest.skip(f"there is no {missing[0]} here")
    os.environ |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
