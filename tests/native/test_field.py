"""C, C++ and Fortran exchange fields, in every pair of languages."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from .conftest import EXCHANGE, Build, run


@pytest.mark.parametrize(("left", "right"), list(itertools.product(["c", "cpp", "f90"], repeat=2)))
def test_any_two_languages_have_the_same_field(build: Build, tmp_path: Path, left: str, right: str) -> None:
    run(tmp_path, EXCHANGE.format(left=build("field", left), right=build("field", right), env=""))
