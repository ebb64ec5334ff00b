"""C, C++ and Fortran exchange every kind of data; any two of them fit."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from .conftest import COMPILERS, Build, run

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
settings:
  k: 0.5
  n: 3
  flag: true
  text: some text
  dt: 10 ms
  floats: [1.5, 2.5]
  ints: [1, 2, 3]
  table: [[1.0, 2.0], [3.0, 4.0]]
programs:
  left: {{executable: {left}, args: [left], env: {{{env}}}}}
  right: {{executable: {right}, args: [right], env: {{{env}}}}}
"""


@pytest.mark.parametrize(("left", "right"), list(itertools.product(COMPILERS, COMPILERS)))
def test_any_two_languages_understand_each_other(build: Build, tmp_path: Path, left: str, right: str) -> None:
    run(tmp_path, MODEL.format(left=build("exchange", left), right=build("exchange", right), env=""))


def test_errors_without_a_run(build: Build) -> None:
    done = subprocess.run([build("alone", "c")], env={}, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
