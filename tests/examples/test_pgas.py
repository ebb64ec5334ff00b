"""Coarrays that are sent arrive in coarrays, in a global array and in ranks of MPI; each of them looks."""

import os
import shutil

import pytest

FOLDER = "pgas"


@pytest.fixture(scope="module")
def built(examples, mpi):
    missing = [command for command in ("caf", "ga-config") if shutil.which(command) is None]
    if missing:
        assert "CI" not in os.environ, f"there is no {missing[0]}; make test-python installs one"
        pytest.skip(f"there is no {missing[0]} here")
    examples.call("make", folder=FOLDER)


def test_all_consumers_find_the_right_numbers(examples, built):
    run = examples.titin("model.ymmsl", folder=FOLDER, run="run")
    said = [
        (run / "instances" / name / "stdout.txt").read_text().split(" right ")[0]
        for name in ("arrays", "images", "ranks")
    ]
    assert said == [
        "20 steps: the velocity is",
        "20 steps: the temperature is",
        "20 steps: temperature and velocity are",
    ]


def test_they_do_look(examples, built):
    ranks = examples.root / FOLDER / "ranks.py"
    ranks.write_text(ranks.read_text().replace("t + x * y", "t + x * y + (x == 50)"))
    with pytest.raises(AssertionError, match="a number of rank 1 is wrong"):
        examples.titin("model.ymmsl", folder=FOLDER, run="wrong")
