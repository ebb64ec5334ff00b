"""The frame for submodels in C++: the calls and their order."""

from __future__ import annotations

from ..conftest import Manage
from .conftest import Build

MODEL = """\
ymmsl_version: v0.2
models:
  frames:
    components:
      frame: {description: steps, implementation: frame, multiplicity: 3}
settings: {t_max: 2, dt: 1}
programs:
  frame: {executable: frame}
"""


def test_functions_are_called_in_the_order_of_the_loop(build: Build, manage: Manage) -> None:
    manager = manage(MODEL)
    done = manager.run(build("submodel", "cpp"))
    assert done.returncode == 0, done.stderr
    status, said = manager.wait()
    assert status == 1
    assert "frame[2]" in said
    assert "solve() has left the time at 0.0" in said
