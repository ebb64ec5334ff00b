"""A plate and the air around it, parallel programs in four languages, give the same bits as one program."""

import numpy as np
import pytest

LANGUAGES = ("python", "c", "cpp", "fortran")
FOLDER = "heat"


@pytest.fixture(scope="module")
def built(examples, mpi):
    examples.call("make", folder=FOLDER)
    with examples.module(FOLDER, "plot") as plot:
        yield plot


@pytest.mark.parametrize("number", range(len(LANGUAGES)))
def test_every_language_plays_each_part(examples, built, number):
    plate, air = LANGUAGES[number], LANGUAGES[number - 1]
    run = examples.titin("model.ymmsl", f"{plate}/plate.ymmsl", f"{air}/air.ymmsl", folder=FOLDER, run=f"{plate}-{air}")
    pictures, history = built.coupled(run)
    np.testing.assert_array_equal(pictures, built.direct()[:: built.EVERY])
    np.testing.assert_array_equal(history, built.direct()[:, built.ROW])


def test_the_picture_compares_and_is_drawn(examples, built):
    examples.titin("model.ymmsl", "c/plate.ymmsl", "cpp/air.ymmsl", folder=FOLDER, run="drawn")
    said = examples.call("python3", "plot.py", "build/drawn", "-o", "build/out.svg", folder=FOLDER)
    assert "degrees of the exact solution" in said
    assert "the same to the bit" in said
    assert (examples.folder / FOLDER / "build/out.svg").read_text().count("<path") > 10
