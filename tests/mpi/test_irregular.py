"""Fields with irregular parts: ranks find out by themselves which rank sends which elements to which rank."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from .conftest import HERE, pair, run

COUNT = 7


def model(ranks: tuple[int, int], *wrong: str) -> str:
    there, back = ([f"{name}{number}" for number in range(COUNT)] for name in ("there", "back"))
    conduits = [f"a.{port}: b.{port}" for port in there] + [f"b.{port}: a.{port}" for port in back]
    programs = [(sys.executable, HERE / "irregular.py", side, *wrong) for side in "ab"]
    return pair((f"o_i: {there}, s: {back}", f"o_i: {back}, s: {there}"), ", ".join(conduits), programs, ranks)


pytestmark = pytest.mark.usefixtures("python")


@pytest.mark.parametrize("ranks", [(1, 1), (1, 3), (3, 2), (4, 4)])
def test_every_rank_gets_what_it_owns(tmp_path: Path, ranks: tuple[int, int]) -> None:
    done = run(tmp_path, model(ranks))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("wrong", "told"),
    [("gap", r"a.*nobody|nobody.*a"), ("overlap", r"ranks? \d and (rank )?\d")],
)
def test_what_nobody_or_two_own_is_told(tmp_path: Path, wrong: str, told: str) -> None:
    done = run(tmp_path, model((2, 2), wrong))
    assert done.returncode == 1, done.stdout
    text = " ".join(done.stdout.split())
    assert "5:6, 0:10" in text and re.search(told, text), text
