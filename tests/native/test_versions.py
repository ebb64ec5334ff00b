"""C, C++ and Fortran take versions of a field, in every pair of languages."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from .conftest import EXCHANGE, Build, run

MODEL = (
    EXCHANGE
    + """\
titin:
  fields:
    right.in: {{mode: pull, versions: 2}}
    left.in: {{from: 2}}
"""
)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(["c", "cpp", "f90"], repeat=2)))
def test_any_two_languages_couple_versions(build: Build, tmp_path: Path, left: str, right: str) -> None:
    run(tmp_path, MODEL.format(left=build("versions", left), right=build("versions", right), env=""))
