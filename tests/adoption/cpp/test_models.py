"""Programs for MUSCLE3's C++ interface over titin get what MUSCLE3's own library gives them, to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Build, Original
from .models import MODELS, run


@pytest.mark.parametrize("name", MODELS)
def test_as_the_original(name: str, build: Build, original: Original, tmp_path: Path) -> None:
    model = MODELS[name]
    got = run(model, {program: [str(build(program))] for program in model.programs}, tmp_path)
    wanted = original(name)
    assert got.keys() == wanted.keys()
    for instance, lines in got.items():
        assert lines.splitlines() == wanted[instance].splitlines(), instance
        assert lines
