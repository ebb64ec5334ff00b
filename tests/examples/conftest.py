"""The examples, run as their READMEs say, in a copy so that the tree stays clean."""

import shutil
import subprocess
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


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    root = tmp_path_factory.mktemp("copy") / "examples"
    shutil.copytree(ROOT / "examples", root, ignore=shutil.ignore_patterns("build", "__pycache__"))
    return Examples(root)
