"""One instance by itself, in each language: scales, units, settings, and ports that nothing is connected to."""

from __future__ import annotations

from pathlib import Path

import pytest

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
programs:
  solo: {{executable: {solo}, env: {{{env}}}}}
titin:
  scales:
    solo: {{dt: 6 min, total: 40 h, dx: [0.5 mm, 2.5 um], extent: [1.2 km, 3 m]}}
"""


@pytest.mark.parametrize("language", ["c", "cpp", "f90"])
def test_an_instance_by_itself(build: Build, tmp_path: Path, language: str) -> None:
    run(tmp_path, MODEL.format(solo=build("solo", language), env=""))
    log = (tmp_path / "run/titin_manager.log").read_text()
    assert "alone, and well" in log
    assert "shows that it can" in log
