"""Macro and micro model, each in four languages: all pairs give the bits of the solution computed directly."""

import itertools

import numpy as np
import pytest

LANGUAGES = ("python", "c", "cpp", "fortran")
FOLDER = "reaction-diffusion"


@pytest.fixture(scope="module")
def built(examples):
    examples.call("make", folder=FOLDER)
    with examples.module(FOLDER, "plot") as plot:
        yield plot


@pytest.mark.parametrize(("macro", "micro"), list(itertools.product(LANGUAGES, LANGUAGES)))
def test_every_pair_of_languages_gives_the_direct_solution(examples, built, macro, micro):
    files = "model.ymmsl", f"{macro}/macro.ymmsl", f"{micro}/micro.ymmsl"
    run = examples.titin(*files, folder=FOLDER, run=f"{macro}-{micro}")
    np.testing.assert_array_equal(built.coupled(run), built.direct()[-1])


#: Both conduits between the two go by files. Four pairs have every language at both ends.
PINNED = """\
ymmsl_version: v0.2
titin: {medium: {micro.initial_state: file, macro.state_in: file}}
"""


@pytest.mark.parametrize(("macro", "micro"), list(zip(LANGUAGES, (*LANGUAGES[1:], LANGUAGES[0]), strict=True)))
def test_every_language_goes_by_files(examples, built, macro, micro):
    (examples.folder / FOLDER / "by_file.ymmsl").write_text(PINNED)
    files = "model.ymmsl", f"{macro}/macro.ymmsl", f"{micro}/micro.ymmsl", "by_file.ymmsl"
    run = examples.titin(*files, folder=FOLDER, run=f"{macro}-{micro}-by-file")
    np.testing.assert_array_equal(built.coupled(run), built.direct()[-1])
    assert not (run / "messages-file").exists()


def test_the_front_moves_at_the_speed_of_fisher(built):
    late, later = (
        np.interp(-0.5, -built.direct()[round(t / built.MACRO_DT)], np.arange(built.CELLS)) for t in (30, 40)
    )
    speed = (later - late) * built.DX / 10
    assert speed == pytest.approx(2 * np.sqrt(built.K * built.D), rel=0.05)


def test_the_picture_compares_and_is_drawn(examples, built):
    examples.titin("model.ymmsl", "python/macro.ymmsl", "fortran/micro.ymmsl", folder=FOLDER, run="drawn")
    said = examples.call("python3", "plot.py", "build/drawn", "-o", "build/out.svg", folder=FOLDER)
    assert "the same to the bit" in said
    assert (examples.folder / FOLDER / "build/out.svg").read_text().count("<path") > 10
