"""Coarrays arrive in coarrays, in a global array and in ranks of MPI, at the coupled steps. Each consumer checks its
data."""

import pytest

from ..conftest import needs

FOLDER = "pgas"


@pytest.fixture(scope="module")
def built(examples, mpi):
    needs("caf", "ga-config")
    examples.call("make", folder=FOLDER)


def said(run):
    """The output of each consumer, without the place of its data."""
    files = ((name, run / "instances" / name / "stdout.txt") for name in ("arrays", "images", "ranks"))
    return {name: [line.split(", in ")[0] for line in file.read_text().splitlines()] for name, file in files}


def test_all_consumers_find_the_right_numbers(examples, built):
    assert said(examples.titin("model.ymmsl", folder=FOLDER, run="run")) == {
        "arrays": ["velocity: 3 of 20 steps, 950 of 1900 numbers"],
        "images": ["temperature: 20 of 20 steps"],
        "ranks": [
            "temperature: 20 of 20 steps, 1900 of 1900 numbers",
            "velocity: 3 of 20 steps, 950 of 1900 numbers",
        ],
    }


def test_no_program_knows_the_pattern(examples, built):
    model = examples.folder / FOLDER / "model.ymmsl"
    other = model.read_text().replace("until: 20}", "until: 7}").replace("[[0, 0], [50, 19]]", "[[10, 0], [50, 38]]")
    (examples.folder / FOLDER / "other.ymmsl").write_text(other)
    assert said(examples.titin("other.ymmsl", folder=FOLDER, run="other")) == {
        "arrays": ["velocity: 3 of 20 steps, 1520 of 1900 numbers"],
        "images": ["temperature: 7 of 20 steps"],
        "ranks": [
            "temperature: 7 of 20 steps, 1900 of 1900 numbers",
            "velocity: 3 of 20 steps, 1520 of 1900 numbers",
        ],
    }


def test_they_do_look(examples, built):
    ranks = examples.folder / FOLDER / "ranks.py"
    ranks.write_text(ranks.read_text().replace("t + x * y", "t + x * y + (x == 50)"))
    with pytest.raises(AssertionError, match="a number of rank 1 is wrong"):
        examples.titin("model.ymmsl", folder=FOLDER, run="wrong")
