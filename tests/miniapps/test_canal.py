"""The canal: whole and divided runs are equal to the bit, on any ranks of either MPI, and agree with the exact steady
flow."""

import json
import re

import numpy as np
import pytest

from ..conftest import ROOT, Copy, configuration, in_force, needs

#: A lid that moves obliquely, so that no two places are alike.
SMALL = """ymmsl_version: v0.2
settings: {length: 12.0, width: 6.0, depth: 4.0, lid_y: 0.03, steps: 40, warmup: 0}
"""


class Canal(Copy):
    """The mini-app, with a small canal."""

    def __init__(self, folder):
        super().__init__(folder)
        (folder / "small.ymmsl").write_text(SMALL)

    def make(self, *mpis):
        for mpi in mpis:
            needs(f"mpicxx.{mpi}")
            self.call("make", f"MPI={mpi}", "CXXFLAGS=-O1 -Werror")

    def run(self, name, *files, more="", status=0):
        """Runs a division of the small canal, with files that change it, and `more`; returns the output."""
        division, *variants = files
        (self.folder / f"{name}.ymmsl").write_text(f"ymmsl_version: v0.2\n{more}")
        variants.append(f"{name}.ymmsl")
        files = [division, "canal.ymmsl", "small.ymmsl", *variants]
        said = self.call("titin", "run", *files, "--run-dir", f"build/{name}", status=status)
        in_force(self.folder / "build" / name, *(self.folder / file for file in variants))
        return said

    def state(self, name):
        """The final flow of a run, and the fingerprint of its state."""
        parts = []
        for file in (self.folder / "build" / name).glob("instances/*_flow/workdir/report.json"):
            report = json.loads(file.read_text())
            parts.append((report["begin"], int(report["fingerprint"], 16), np.load(file.with_name("flow.npy"))))
        _, states, flows = zip(*sorted(parts, key=lambda part: part[0]), strict=True)
        return np.concatenate(flows, axis=3), sum(states) % 2**64


@pytest.fixture(scope="session")
def canal(tmp_path_factory):
    return Canal.of("miniapps/canal", tmp_path_factory)


@pytest.fixture(scope="session")
def reference(canal):
    """The whole canal on one rank."""
    canal.make("openmpi")
    canal.run("reference", "whole.ymmsl", "openmpi.ymmsl", more="resources: {whole.whole: {mpi_processes: 1}}")
    return canal.state("reference")


def ranks(left, right, more=""):
    """Settings and resources of the two sections: the number of ranks along and across each, and more settings."""
    (left_along, left_across), (right_along, right_across) = left, right
    return (
        f"settings: {{left.across: {left_across}, right.across: {right_across}{more}}}\n"
        f"resources: {{two.left: {{mpi_processes: {left_along * left_across}}}, "
        f"two.right: {{mpi_processes: {right_along * right_across}}}}}\n"
    )


def same(canal, name, reference):
    flow, state = canal.state(name)
    assert flow.shape == reference[0].shape
    assert np.array_equal(flow.view(np.uint64), reference[0].view(np.uint64))
    assert state == reference[1]


@pytest.mark.parametrize(("along", "across"), [(2, 1), (1, 2), (2, 2)])
def test_ranks_change_no_bit_of_the_whole(canal, reference, along, across):
    name = f"whole-{along}-{across}"
    more = f"settings: {{across: {across}}}\nresources: {{whole.whole: {{mpi_processes: {along * across}}}}}"
    canal.run(name, "whole.ymmsl", "openmpi.ymmsl", more=more)
    same(canal, name, reference)


@pytest.mark.parametrize("exchange", ["fields", "gathered"])
@pytest.mark.parametrize(
    ("mpi", "left", "right"),
    [
        ("openmpi", (1, 1), (1, 1)),
        ("openmpi", (1, 2), (1, 3)),
        ("openmpi", (2, 2), (1, 1)),
        ("mpich", (1, 3), (2, 2)),
    ],
)
def test_a_seam_changes_no_bit(canal, reference, exchange, mpi, left, right):
    canal.make(mpi)
    name = f"{exchange}-{mpi}-{left}-{right}".translate(str.maketrans("", "", "(), "))
    files = ["two.ymmsl", f"{mpi}.ymmsl", *(["gathered.ymmsl"] if exchange == "gathered" else [])]
    canal.run(name, *files, more=ranks(left, right))
    assert configuration(canal.folder / "build" / name)["settings"]["exchange"] == exchange
    same(canal, name, reference)


@pytest.mark.parametrize("exchange", ["fields", "gathered"])
def test_what_is_computed_first_changes_no_bit(canal, reference, exchange):
    canal.make("openmpi")
    name = f"late-{exchange}"
    files = ["two.ymmsl", "openmpi.ymmsl", *(["gathered.ymmsl"] if exchange == "gathered" else [])]
    canal.run(name, *files, more=ranks((1, 2), (2, 2), ", overlap: false"))
    assert configuration(canal.folder / "build" / name)["settings"]["overlap"] is False
    same(canal, name, reference)


def test_a_seam_joins_two_kinds_of_mpi(canal, reference):
    canal.make("openmpi", "mpich")
    two = (canal.folder / "two.ymmsl").read_text()
    left, right = two.split("      right:\n")
    mixed = f"{left}      right:\n{right.replace('implementation: canal', 'implementation: canal_mpich')}"
    (canal.folder / "mixed.ymmsl").write_text(mixed)
    other = (canal.folder / "mpich.ymmsl").read_text().replace("  canal:", "  canal_mpich:")
    (canal.folder / "other.ymmsl").write_text(other)
    canal.run("both", "mixed.ymmsl", "openmpi.ymmsl", "other.ymmsl", more=ranks((1, 2), (1, 2)))
    same(canal, "both", reference)


def test_a_section_may_have_two_neighbours(canal, reference):
    model = """ymmsl_version: v0.2
models:
  three:
    components:
      a: {description: d, ports: {o_i: to_right, s: from_right, o_f: report flow}, implementation: canal}
      b: {description: d, ports: {o_i: to_left to_right, s: from_left from_right, o_f: report flow},
          implementation: canal}
      c: {description: d, ports: {o_i: to_left, s: from_left, o_f: report flow}, implementation: canal}
      a_flow: {description: d, ports: {f_init: report flow}, implementation: keep}
      b_flow: {description: d, ports: {f_init: report flow}, implementation: keep}
      c_flow: {description: d, ports: {f_init: report flow}, implementation: keep}
    conduits: {a.to_right: b.from_left, b.to_left: a.from_right, b.to_right: c.from_left, c.to_left: b.from_right,
      a.report: a_flow.report, b.report: b_flow.report, c.report: c_flow.report,
      a.flow: a_flow.flow, b.flow: b_flow.flow, c.flow: c_flow.flow}
settings: {a.x1: 0.4, b.x0: 0.4, b.x1: 0.5, c.x0: 0.5, b.across: 2}
resources: {three.a: {mpi_processes: 1}, three.b: {mpi_processes: 2}, three.c: {mpi_processes: 1}}
"""
    (canal.folder / "three.ymmsl").write_text(model)
    canal.run("between", "three.ymmsl", "openmpi.ymmsl")
    same(canal, "between", reference)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ("across: 2", "3 ranks make no grid with 2 across the canal"),
        ("across: 3, width: 1.0", "13 points along the canal and 2 across it is too small for 1 by 3 ranks"),
        ("exchange: none", 'the setting `exchange` is "none": set it to fields or to gathered'),
    ],
)
def test_what_cannot_be_is_told(canal, reference, settings, told):
    name = "odd" + "".join(filter(str.isalnum, settings))
    files = ["two.ymmsl" if "exchange" in settings else "whole.ymmsl", "openmpi.ymmsl"]
    ranks = "" if "exchange" in settings else "resources: {whole.whole: {mpi_processes: 3}}"
    said = canal.run(name, *files, more=f"settings: {{{settings}}}\n{ranks}", status=1)
    assert told in " ".join(said.split()), said


def test_the_demo_agrees_with_itself_and_with_the_exact_flow(canal):
    canal.make("openmpi")
    said = canal.call("./run.sh")
    for run in ("whole", "two", "spread", "gathered"):
        in_force(canal.folder / "build" / run, canal.folder / f"{run}.ymmsl")
    assert said.count("the same to the bit") == 3, said
    assert float(re.search(r"as at the beginning within (\S+)", said).group(1)) < 1e-12
    assert float(re.search(r"within (\S+) of the exact one", said).group(1)) < 0.02
    assert (canal.folder / "build" / "canal.svg").read_text().startswith("<?xml")


def test_the_times_of_the_benchmark_are_drawn(canal):
    results = ROOT / "benchmarks" / "results" / "canal_sizes.json"
    canal.call("python3", "plot.py", "--times", results, "-o", "times.svg")
    drawn = (canal.folder / "times.svg").read_text()
    assert drawn.startswith("<?xml") and "gathered" in drawn
