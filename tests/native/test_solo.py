"""One instance by itself, in each language: scales, units, settings, and ports without a conduit."""

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
  half: 2.5
  power: 1e10
  vast: 1e300
programs:
  solo: {{executable: {solo}, env: {{{env}}}}}
titin:
  time_unit: min
  scales:
    solo: {{dt: 6 min, total: 40 h, dx: [0.5 mm, 2.5 um], extent: [1.2 km, 3 m]}}
"""


def model(program: Path, env: str = "") -> str:
    """The model with this program. An argument gives the program the release of the command."""
    done = subprocess.run([TITIN, "--version"], capture_output=True, text=True, check=True)
    return MODEL.format(solo=program, env=f"RELEASE: '{done.stdout.split()[-1]}', {env}")


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_an_instance_by_itself(build: Build, tmp_path: Path, language: str) -> None:
    run(tmp_path, model(build("solo", language)))
    log = (tmp_path / "run/titin_manager.log").read_text()
    assert "alone, and well" in log
    assert "shows that it can" in log


@pytest.mark.parametrize(
    ("language", "which", "words"),
    [
        ("f90", "copied", "an instance cannot be copied"),
        ("f90", "array", "receive 'start': the array to receive into is not allocated"),
        ("f90", "logicals", "receive 'start': the array to receive into is not allocated"),
        ("f90", "unsent", "send on 'end': the array is not allocated"),
        ("f90", "unsent-logicals", "send on 'end': the array is not allocated"),
        ("f90", "nothing", "the array to put into a value is not allocated"),
        ("f90", "viewed", "expected an array of float64 of rank 2 in Fortran order, found the real number 1.5"),
        ("cpp", "viewed", "expected an array of float64, found the real number"),
        ("cpp", "loop", "expected an array of float64, found the real number 1.5"),
        ("cpp", "setting", "nope"),
    ],
)
def test_an_error_that_ends_a_program_is_reported(
    build: Build, tmp_path: Path, language: str, which: str, words: str
) -> None:
    text = model(build("ends", language)).replace("env:", f"args: [{which}], env:")
    (tmp_path / "model.ymmsl").write_text(text)
    command = [TITIN, "run", "model.ymmsl", "--run-dir", "run"]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 1, done.stdout
    first = done.stdout.partition("First:")[2].partition("\n")[0]
    assert "solo reported an error: " in first, done.stdout
    assert words in first, done.stdout
