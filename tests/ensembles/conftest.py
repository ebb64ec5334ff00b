"""Ensembles of Python programs, run by the `titin` command."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..conftest import TITIN

HERE = Path(__file__).resolve().parent
WATCHDOG = 240  # seconds; only a hang takes so long

MODEL = """\
ymmsl_version: v0.2
models:
  study:
    components:
      driver: {{description: drives, ports: {{o_i: out, s: back}}, implementation: driver}}
      micro: {{description: a member, ports: {{f_init: in, o_f: out}}, implementation: micro, multiplicity: {members}}}
    conduits: {{driver.out: micro.in, micro.out: driver.back}}
programs:
  driver: {{executable: python3, args: [{here}/{driver}.py], env: {{HOW: '{how}', BY: {by}}}}}
  micro: {{executable: python3, args: [{here}/{member}.py], env: {{CRASHES: '{crashes}'}}}}
titin: {{grace: 1 s, ensemble: {{micro: {ensemble}}}}}
"""


@dataclass
class Done:
    """A run that has ended."""

    code: int
    end: dict[str, Any]
    said: str
    directory: Path

    def results(self) -> list[list[Any]]:
        """What the driver has had from each member, step by step."""
        found: list[list[Any]] = json.loads((self.directory / "instances/driver/workdir/results.json").read_text())
        return found

    def log(self) -> str:
        return (self.directory / "titin_manager.log").read_text()


def titin(folder: Path, *arguments: str, run: str = "run") -> Done:
    """Runs ``titin run --json``."""
    done = subprocess.run(
        [TITIN, "run", "--json", "--run-dir", run, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=WATCHDOG,
        check=False,
    )
    assert done.stdout, done.stderr
    return Done(done.returncode, json.loads(done.stdout), done.stderr, folder / run)


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Done]:
    def run(members: int, how: dict[int, str], ensemble: str, by: str = "slot", crashes: int = 0) -> Done:
        programs = {"here": HERE, "driver": "driver", "member": "member"}
        text = MODEL.format(**programs, members=members, how=json.dumps(how), by=by, ensemble=ensemble, crashes=crashes)
        (tmp_path / "model.ymmsl").write_text(text)
        return titin(tmp_path, "model.ymmsl")

    return run
