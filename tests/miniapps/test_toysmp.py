"""ToySMP: every number that its components exchange, by several ranks of either MPI, and the output about the time."""

import shutil

import pytest

from benchmarks import native

from ..conftest import Copy, configuration, in_force, needs

SMALL = """ymmsl_version: v0.2
settings: {{nx: 7, ny: 5, steps: 8, check: true}}
resources: {{toysmp.a: {{mpi_processes: {}}}, toysmp.b: {{mpi_processes: {}}}, toysmp.c: {{mpi_processes: {}}}}}
"""


class Toy(Copy):
    """The mini-app, with small fields."""

    def make(self, mpi, *flags):
        needs(f"mpifort.{mpi}", f"mpicc.{mpi}")
        self.call("make", f"MPI={mpi}", "FFLAGS=-O1", *flags)

    def run(self, way, programs, ranks, name, status=0):
        (self.folder / f"{name}.ymmsl").write_text(SMALL.format(*ranks))
        files = [f"{way}.ymmsl", "toysmp.ymmsl", f"{programs}.ymmsl", f"{name}.ymmsl"]
        said = self.call("titin", "run", *files, "--run-dir", f"build/{name}", status=status)
        in_force(self.folder / "build" / name, *(self.folder / file for file in files if file != "toysmp.ymmsl"))
        return said


@pytest.fixture(scope="session")
def toy(tmp_path_factory):
    return Toy.of("miniapps/toysmp", tmp_path_factory)


@pytest.mark.parametrize(
    ("way", "programs", "ranks"),
    [
        ("separate", "openmpi", (1, 1, 1)),
        ("aggregated", "openmpi", (2, 3, 1)),
        ("separate", "mpich", (3, 2, 2)),
        ("aggregated", "mpich", (1, 2, 3)),
        ("separate", "mixed", (2, 2, 2)),
        ("aggregated", "mixed", (3, 1, 2)),
    ],
)
def test_every_number_arrives_where_it_should(toy, way, programs, ranks):
    for mpi in ("openmpi", "mpich") if programs == "mixed" else (programs,):
        toy.make(mpi)
    name = f"{way}-{programs}"
    toy.run(way, programs, ranks, name)
    for component in "abc":
        lines = (
            (toy.folder / "build" / name / "instances" / component / "workdir" / "times.csv").read_text().splitlines()
        )
        assert lines[0].startswith("begin,") and len(lines) == 1 + 8


def test_a_wrong_number_is_told(toy):
    toy.make("openmpi")
    wrong = Toy(shutil.copytree(toy.folder, toy.folder.parent / "wrong", copy_function=shutil.copy2))
    source = wrong.folder / "comp_b.f90"
    source.write_text(source.read_text().replace("c = both", "c = both + merge(1, 0, both > 100)"))
    wrong.make("openmpi")
    said = wrong.run("aggregated", "openmpi", (2, 2, 2), "wrong", status=1)
    assert "before step 1 field C" in said, said


@pytest.mark.parametrize(
    ("ranks", "way", "how"),
    [((2, 3, 2), "separate", "alltoallv"), ((3, 1, 2), "aggregated", "alltoallv"), ((2, 2, 2), "aggregated", "isend")],
)
def test_the_rival_by_hand_comes_to_the_same(tmp_path, monkeypatch, ranks, way, how):
    needs("mpicc.openmpi")
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    native.rival.cache_clear()
    program = native.rival("toysmp_mpi", "openmpi")
    native.rival.cache_clear()
    command = [*native.OPEN_MPI_YIELD, "-np", sum(ranks), program, *ranks[:2], 16, 5, 4, way, how]
    Toy(tmp_path).call(*command)
    assert all((tmp_path / f"{component}.csv").read_text().count("\n") == 1 + 4 for component in "abc")


def test_the_demo_tells_and_draws_its_times(toy):
    toy.make("openmpi")
    (toy.folder / "small.ymmsl").write_text("ymmsl_version: v0.2\nsettings: {nx: 16, ny: 16, steps: 4}\n")
    said = toy.call("./run.sh", "small.ymmsl", RANKS="1 2")
    for way in ("separate", "aggregated"):
        for ranks in "12":
            run = toy.folder / "build" / f"{way}-{ranks}"
            in_force(run, toy.folder / f"{way}.ymmsl", toy.folder / "small.ymmsl")
            assert {count["mpi_processes"] for count in configuration(run)["resources"].values()} == {int(ranks)}
    lines = [line for line in said.splitlines() if line.startswith(("1, ", "2, "))]
    assert [line[:13] for line in lines] == ["1, separate  ", "1, aggregated", "2, separate  ", "2, aggregated"], said
    assert all(float(number) > 0 for line in lines for number in line.split()[2:]), said
    assert (toy.folder / "build" / "toysmp.svg").read_text().startswith("<?xml")
