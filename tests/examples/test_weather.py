"""A river and a radar pull the rain of a parallel program, each at its own pace, in four languages."""

import pytest

from ..conftest import in_force

LANGUAGES = ("python", "c", "cpp", "fortran")
FOLDER = "weather"


@pytest.fixture(scope="module")
def built(examples, mpi):
    examples.call("make", "-j2", folder=FOLDER)
    with examples.module(FOLDER, "plot") as plot:
        yield plot


@pytest.mark.parametrize("number", range(len(LANGUAGES)))
def test_every_language_plays_each_part(examples, built, number):
    weather, river, radar = (LANGUAGES[number - shift] for shift in range(3))
    parts = f"{weather}/weather.ymmsl", f"{river}/river.ymmsl", f"{radar}/radar.ymmsl"
    run = examples.titin("model.ymmsl", *parts, folder=FOLDER, run=f"{weather}-{river}")
    assert built.wrong(run)[0] is None, (built.said(run, "river"), built.said(run, "radar"))


@pytest.mark.parametrize("slow", ["weather", "river", "radar"])
def test_the_river_is_the_same_whoever_is_slow(examples, built, slow):
    paces = {name: 0.02 if name == slow else 0.0 for name in ("weather", "river", "radar")}
    lines = "".join(f"  {name}.pace: {pace}\n" for name, pace in paces.items())
    (examples.folder / FOLDER / f"{slow}.ymmsl").write_text(f"ymmsl_version: v0.2\nsettings:\n{lines}")
    parts = "c/weather.ymmsl", "cpp/river.ymmsl", "c/radar.ymmsl", f"{slow}.ymmsl"
    run = examples.titin("model.ymmsl", *parts, folder=FOLDER, run=f"slow-{slow}")
    assert built.wrong(run)[0] is None


def test_the_picture_compares_and_is_drawn(examples, built):
    parts = "model.ymmsl", "c/weather.ymmsl", "python/river.ymmsl", "fortran/radar.ymmsl"
    examples.call("titin", "run", "--trace", *parts, "--run-dir", "build/drawn", folder=FOLDER)
    folder = examples.folder / FOLDER
    in_force(folder / "build/drawn", *(folder / part for part in parts[1:]))
    said = examples.call("python3", "plot.py", "build/drawn", "-o", "build/out.svg", folder=FOLDER)
    assert "the river as in every run" in said
    assert (examples.folder / FOLDER / "build/out.svg").read_text().count("<path") > 10


def test_what_is_wrong_is_seen(examples, built):
    parts = "c/weather.ymmsl", "c/river.ymmsl", "c/radar.ymmsl"
    run = examples.titin("model.ymmsl", *parts, folder=FOLDER, run="wrong")
    for name, why in [("radar", "NEVER was"), ("river", "the river is WRONG")]:
        stdout = run / "instances" / name / "stdout.txt"
        first, rest = stdout.read_text().split("\n", 1)
        stdout.write_text(f"1{first[1:]}\n{rest}")
        assert why in built.wrong(run)[0]
