"""A serial search calls a parallel integral, in each language, and finds the limit that the error function gives."""

import pytest

FOLDER = "integral"


@pytest.fixture(scope="module")
def built(examples, mpi):
    examples.call("make", folder=FOLDER)


@pytest.mark.parametrize("language", ["c", "cpp", "fortran", "python"])
def test_the_limit_is_found(examples, built, language):
    run = examples.titin("model.ymmsl", f"{language}/integral.ymmsl", folder=FOLDER, run=language)
    said = (run / "instances/search/stdout.txt").read_text()
    assert "   4  0.5510394276   0.5000000000" in said
    assert "of the error function (allowed: 1e-10)" in said
