"""C, C++ and Fortran exchange fields; any two of them fit."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from .conftest import Build, run

MODEL = """\
ymmsl_version: v0.2
models:
  exchange:
    components:
      left: {{ports: {{o_i: out, s: in}}, implementation: left}}
      right: {{ports: {{o_i: out, s: in}}, implementation: right}}
    conduits:
      left.out: right.in
      right.out: left.in
programs:
  left: {{executable: {left}, args: [left], env: {{{env}}}}}
  right: {{executable: {right}, args: [right], env: {{{env}}}}}
"""


@pytest.mark.parametrize(("left", "right"), list(itertools.product(["c", "cpp", "f90"], repeat=2)))
def test_any_two_languages_have_the_same_field(build: Build, tmp_path: Path, left: str, right: str) -> None:
    run(tmp_path, MODEL.format(left=build("field", left), right=build("field", right), env=""))
