"""The systems that run the programs of this folder: MUSCLE3 0.10 and 0.11, and titin's libmuscle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..conftest import TOOLS, muscle3

PROGRAMS = Path(__file__).parent / "programs"
WATCHDOG = 60  # seconds; only a hang takes so long


@dataclass(frozen=True)
class System:
    """A libmuscle, in a folder for PYTHONPATH or in the environment of the tests, and its ``muscle_manager``."""

    name: str
    command: list[str]
    folder: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of this process, without what it says about runs."""
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("MUSCLE_", "TITIN_"))}
        return ours | {"PYTHONDONTWRITEBYTECODE": "1"} | ({"PYTHONPATH": str(self.folder)} if self.folder else {})

    def start(self, description: Path, run_dir: Path) -> subprocess.Popen[str]:
        """``muscle_manager --start-all`` with one description."""
        run_dir.mkdir()
        command = [*self.command, "--start-all", "--run-dir", str(run_dir), str(description)]
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        streams |= {"stdin": subprocess.DEVNULL, "start_new_session": True}
        return subprocess.Popen(command, env=self.environment, cwd=run_dir, **streams)


def _original(version: str) -> System:
    return System(version, [sys.executable, "-m", "muscle3.muscle_manager"], muscle3(version))


ORIGINALS = [_original("0.10"), _original("0.11")]
TITIN = System("titin", [str(TOOLS / "muscle_manager")])


@dataclass(frozen=True)
class Outcome:
    """How a run has ended, and what its programs have recorded, by instance."""

    code: int
    records: dict[str, list[Any]]
    output: str
    """What the manager and the programs have printed beside, for a look at a failure."""


def description(model: str, folder: Path) -> Path:
    """The description of a model, with the place of its programs."""
    text = (PROGRAMS / f"{model}.ymmsl").read_text()
    path = folder / f"{model}.ymmsl"
    path.write_text(text.replace("PROGRAMS", str(PROGRAMS)).replace("python3,", f"{sys.executable},"))
    return path


def outcome(process: subprocess.Popen[str], run_dir: Path) -> Outcome:
    """Waits for the end of a run."""
    try:
        output, _ = process.communicate(timeout=WATCHDOG)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output = f"{output}\nit has not ended within {WATCHDOG} s"
    records: dict[str, list[Any]] = {}
    for instance in sorted((run_dir / "instances").glob("*")):
        text = (instance / "stdout.txt").read_text() if (instance / "stdout.txt").exists() else ""
        records[instance.name] = [json.loads(line) for line in text.splitlines() if line.startswith("[")]
        errors = instance / "stderr.txt"
        output += f"\n{instance.name}: {errors.read_text()}" if errors.exists() else ""
    return Outcome(process.returncode, records, output)
