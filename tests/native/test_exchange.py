"""C, C++ and Fortran exchange every kind of data, in every pair of languages."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from .conftest import COMPILERS, EXCHANGE, HERE, Build, run

#: The settings of the programs.
SETTINGS = """\
settings:
  k: 0.5
  n: 3
  flag: true
  text: some text
  dt: 10 ms
  floats: [1.5, 2.5]
  ints: [1, 2, 3]
  table: [[1.0, 2.0], [3.0, 4.0]]
"""

MODEL = EXCHANGE + SETTINGS


@pytest.mark.parametrize(("left", "right"), list(itertools.product(COMPILERS, COMPILERS)))
def test_any_two_languages_understand_each_other(build: Build, tmp_path: Path, left: str, right: str) -> None:
    run(tmp_path, MODEL.format(left=build("exchange", left), right=build("exchange", right), env=""))


@pytest.mark.parametrize(("left", "right"), list(itertools.product(["c", "cpp", "f90", "py"], repeat=2)))
def test_elements_of_every_type_arrive_by_every_getter(build: Build, tmp_path: Path, left: str, right: str) -> None:
    programs = {name: HERE / "elements.py" if name == "py" else build("elements", name) for name in (left, right)}
    run(tmp_path, EXCHANGE.format(left=programs[left], right=programs[right], env=""))


@pytest.mark.parametrize("language", COMPILERS)
def test_every_language_exchanges_by_files(build: Build, tmp_path: Path, language: str) -> None:
    program = build("exchange", language)
    pins = "titin: {medium: {left.in: file, right.in: file}}\n"
    run(tmp_path, MODEL.format(left=program, right=program, env="") + pins)
    assert not (tmp_path / "run/messages-file").exists()


def test_errors_without_a_run(build: Build) -> None:
    done = subprocess.run([build("alone", "c")], env={}, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
