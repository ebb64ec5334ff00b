"""A pair of submodels in frames of Python and C++ gives the same bits as with loops of their own."""

import itertools

import numpy as np
import pytest

FOLDER = "frame"


@pytest.fixture(scope="module")
def built(examples):
    examples.call("make", folder=FOLDER)
    with examples.module("reaction-diffusion", "plot") as plot:
        yield plot


@pytest.mark.parametrize(("macro", "micro"), list(itertools.product(("py", "cpp"), repeat=2)))
def test_every_pair_gives_the_direct_solution(examples, built, macro, micro):
    files = "../reaction-diffusion/model.ymmsl", f"macro-{macro}.ymmsl", f"micro-{micro}.ymmsl"
    run = examples.titin(*files, folder=FOLDER, run=f"{macro}-{micro}")
    np.testing.assert_array_equal(built.coupled(run), built.direct()[-1])
