"""One instance by itself, in each language: scales, units, settings, and ports that nothing is connected to."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  alone:
    components:
      solo: {{ports: {{f_init: start, o_i: out wide, s: in, o_f: end}}, implementation: solo}}
settings:
  solo.width: 2.5 mm
  day: 1 day
  plain: 4
  points: [1, 2, 3]
  lowest: -2147483648
  least: -9223372036854775808
  ends: [2147483647, -2147483648]
  beyond: [2147483647, -2147483649]
programs:
  solo: {{executable: {solo}, env: {{{env}}}}}
titin:
  scales:
    solo: {{dt: 6 min, total: 40 h, dx: [0.5 mm, 2.5 um], extent: [1.2 km, 3 m]}}
"""


def model(program: Path, env: str = "") -> str:
    """The model with this program, which is told the release that the command has."""
    done = subprocess.run([TITIN, "--version"], capture_output=True, text=True, check=True)
    return MODEL.format(solo=program, env=f"RELEASE: '{done.stdout.split()[-1]}', {env}")


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_an_instance_by_itself(build: Build, tmp_path: Path, language: str) -> None:
    run(tmp_path, model(build("solo", language)))
    log = (tmp_path / "run/titin_manager.log").read_text()
    assert "alone, and well" in log
    assert "shows that it can" in log


def test_an_instance_is_not_copied(build: Build, tmp_path: Path) -> None:
    (tmp_path / "model.ymmsl").write_text(model(build("copied", "f90")))
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "an instance cannot be copied" in done.stdout
