"""The benchmarks count correctly and name what they measured, and their programs run."""

import json
import math
import subprocess
from datetime import date
from pathlib import Path

import pytest
import yaml

from benchmarks import canal, copying, distributed, harness, native, nbody, octree, pairs, papers, paths, pull, soak
from benchmarks.blocks import Task
from benchmarks.harness import KIB, Record, compare, interval, stepping, sweep
from benchmarks.sites import Site

from ..conftest import ROOT, TITIN, needs


def test_the_interval_leaves_out_what_is_rare():
    samples = [1.0] * 7 + [2.0] * 7 + [1000.0]
    assert interval(samples) == (1.0, 2.0)
    # The sixth values from each end of 20 hold the median with 96 %; the seventh values of 21 would with 92 % only.
    assert [interval(list(range(count))) for count in (20, 21, 100)] == [(5, 14), (5, 15), (39, 60)]
    # Too few for an order statistic: the whole range.
    assert interval([3.0, 1.0, 2.0]) == (1.0, 3.0)


def test_the_ratio_is_that_of_each_round():
    # The machine is ten times slower in the last round, for both.
    record = compare("?", "case", [(1.0, 2.0), (1.0, 2.0), (10.0, 20.0)], rival="other", unit="s")
    assert (record.ratio, record.spread["ratio"]) == (0.5, [0.5, 0.5])
    assert (record.titin, record.rival, record.rounds) == (1.0, 2.0, 3)
    # With rounds of titin alone, the ratio is the ratio of the medians.
    record = compare("?", "case", [(1.0, 2.0)], alone=[3.0, 3.0], rival="other", unit="s")
    assert (record.ratio, record.rounds, record.rival_rounds) == (1.5, 3, 1)


def test_each_contender_begins_in_turn():
    order = []

    def contender(name):
        return lambda: order.append(name) or {"case": len(order)}

    figures = sweep(3, {name: contender(name) for name in "abc"})
    assert "".join(order) == "abc" + "bca" + "cab"
    assert figures["b"]["case"] == [2, 4, 9]


@pytest.mark.parametrize("conduits", [(), ("c0.out: [c1.in, c2.in]", "c1.back: c0.a", "c2.back: c0.b")])
def test_the_models_that_are_made_up_are_right(conduits, tmp_path):
    model = tmp_path / "model.ymmsl"
    model.write_text(stepping([("/bin/true", [number, "a b"]) for number in range(3)], conduits))
    done = subprocess.run([TITIN, "check", model], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("way", [canal.WHOLE, *canal.WAYS])
def test_the_models_of_the_canal_are_right(way, tmp_path):
    model = tmp_path / "model.ymmsl"
    model.write_text(canal.model(Path("/bin/true"), 0.5, way))
    done = subprocess.run([TITIN, "check", model], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_the_model_of_the_octree_is_right(tmp_path):
    model = tmp_path / "model.ymmsl"
    model.write_text(octree.model(Path("/bin"), 4))
    done = subprocess.run([TITIN, "check", model], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    # It has all settings that the programs ask for.
    given, wanted = (yaml.safe_load(file.read_text())["settings"] for file in (model, octree.FOLDER / "octree.ymmsl"))
    assert given.keys() == wanted.keys()


@pytest.mark.parametrize("blocks", [["whole"], ["west", "east"]])
def test_the_models_of_the_cavity_are_right(blocks, tmp_path):
    model = tmp_path / "model.ymmsl"
    model.write_text(distributed.cavity_model(Path("/bin/true"), 256, 20, blocks))
    done = subprocess.run([TITIN, "check", model], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_efficiencies_and_the_hidden_part_are_those_of_each_round():
    problem = distributed.Problem("box", dict, {"": dict})
    # A line of 10 ms; the machine is twice as slow in the second round.
    times = {"T_mono": [8.0, 16.0, 8.0], "T_local ": [10.0, 20.0, 10.0], "T_distr ": [11.0, 25.0, 12.5]}
    found = distributed.records(10.0, problem, times)
    assert distributed.rows(found) == [
        ["10 ms", "box", "8 ms", "10 ms", "12.5 ms", "0.80", "0.64", "0.50 [0.00, 0.80]"]
    ]
    assert {distributed.line_of(record) for record in found} == {"10 ms"}


def test_halves_that_end_in_other_bits_are_no_result():
    problem = distributed.Problem("box", dict, {"": dict})
    figures = {name: {"step": [1.0, 2.0], "state": [7, 7]} for name in ("T_mono", "T_local ", "T_distr ")}
    assert distributed.times(problem, figures)["T_distr "] == [1.0, 2.0]
    figures["T_distr "]["state"] = [7, 8]
    with pytest.raises(SystemExit, match=r"box: .* T_distr .* do not all end in the same bits"):
        distributed.times(problem, figures)


def test_the_canal_has_the_points_of_the_paper():
    counts = [math.prod(canal.points(resolution)) for resolution in (0.5, 1.0, 4.0)]
    assert counts == [819_126, 5_863_451, 343_258_601]


@pytest.mark.parametrize("way", ["loan", "into"])
def test_a_window_of_mpi_moves_what_it_should(way, tmp_path, monkeypatch):
    needs("mpicc.openmpi")
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    native.rival.cache_clear()
    found = pairs.other(pairs.Task(reads=True, share=500, largest=16 * KIB), pairs.window(way))()
    native.rival.cache_clear()
    assert list(found) == [0, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB]


@pytest.mark.parametrize("contender", [pull.titin, pull.by_hand])
def test_a_pull_moves_what_it_should(contender, tmp_path, monkeypatch):
    needs("mpicc.openmpi")
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    for made in (native.parallel, native.rival):
        made.cache_clear()
    # Each rank that pulls gets parts from both rows of sending ranks.
    found = contender(Task(pull.PULL, (40, 50), ((2, 2), (1, 3)), 1, trips=6))()
    for made in (native.parallel, native.rival):
        made.cache_clear()
    assert sorted(found) == [0, 1] and all(time > 0 for time in found.values())


@pytest.mark.parametrize("way", ["view", "into", "loan"])
@pytest.mark.parametrize("medium", ["tcp", "inproc", None])
def test_a_pair_finds_a_time_for_each_size(way, medium, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    native.build.cache_clear()
    task = pairs.Task(reads=True, share=500, largest=16 * KIB)
    found = pairs.titin(task, way, medium=medium)()
    native.build.cache_clear()
    assert list(found) == [0, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB]
    assert all(time > 0 for time in found.values())


def test_files_by_hand_move_what_files_of_titin_do(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    for made in (native.build, native.rival):
        made.cache_clear()
    (tmp_path / "messages").mkdir()
    task = pairs.Task(reads=True, share=500, largest=16 * KIB)
    for found in (
        pairs.titin(task, medium="file", folder=tmp_path / "messages")(),
        pairs.other(task, pairs.files(tmp_path / "messages"))(),
    ):
        assert list(found) == [0, KIB, 2 * KIB, 4 * KIB, 8 * KIB, 16 * KIB]
    for made in (native.build, native.rival):
        made.cache_clear()
    assert list((tmp_path / "messages").iterdir()) == []


@pytest.mark.parametrize(
    ("medium", "streams", "kind"),
    [("titin", 0, "tcp:"), ("titin", 2, "session:"), ("tcp", 1, ""), ("tcp", 3, ""), ("tcp", -1, "")],
)
def test_a_path_and_sockets_find_a_time_for_each_size(medium, streams, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(native, "FOLDER", tmp_path)
    monkeypatch.setattr(native, "packages", lambda: None)
    for made in (native.build, native.rival):
        made.cache_clear()
    ends = [Site(name, "", "127.0.0.1:0") for name in ("here", "there")]
    found = paths.Pair(medium, tmp_path, ends, [1, 8, 10_001], streams=streams, kind=kind)()
    for made in (native.build, native.rival):
        made.cache_clear()
    assert list(found) == [1, 8, 10_001]
    assert all(time > 0 for time in found.values())


def test_a_step_is_that_of_both_parts_where_they_wait_in_turn():
    step = {"seconds": 1.0, "communication": 0.0, "waiting": 0.0, "received": 500_000.0}
    late = {"seconds": 3.0, "communication": 2.0, "waiting": 1.0, "received": 500_000.0}
    lost = {"seconds": 9.0, "communication": 8.0, "waiting": 8.0, "received": 500_000.0}
    # The first step is not counted; in the last one a lost packet holds up both.
    found = nbody.step_figures([[lost, step, late, step, lost], [lost, late, step, late, lost]], 1)
    assert found == {
        "step": 2000.0,
        "average": 3750.0,
        "communication": 1000.0,
        "waiting": 500.0,
        "bytes": 500_000.0,
    }
    ours = {name: [figure] * 3 for name, figure in found.items()}
    figures = {"titin": ours, nbody.WHOLE: {"step": [1000.0] * 3}}
    records = nbody.records("1992 ms", nbody.HALVES, figures, 1992.0)
    # Half of the round trip, and 4 ms for the bytes.
    assert [(record.rival, record.ratio) for record in records if record.target] == [(1000.0, 1.0)]


def test_a_row_of_the_parts_has_their_shares():
    ours = {"step": [200.0], "average": [240.0], "communication": [50.0], "waiting": [10.0], "bytes": [1e6]}
    figures = {"titin": ours, nbody.WHOLE: {"step": [160.0]}}
    far = nbody.records("37.6 ms", nbody.UNEQUAL, figures, 37.6)
    here = nbody.records(nbody.LOCAL, nbody.HALVES, figures | {nbody.BY_MPI: {"step": [150.0]}})
    host = ["one host", "32³, halves", "160 ms", "150 ms", "200 ms (1.25)", "240 ms", "50 ms", "25 %", "5 %", ""]
    line = ["37.6 ms", "32³, 3:1", "160 ms", "", "200 ms (1.25)", "240 ms", "50 ms", "25 %", "5 %", "26.8 ms (1.87)"]
    assert nbody.rows(far + here) == [host, line]


def test_parts_that_end_in_other_bits_are_no_result():
    figures = {"titin": {"state": ["a", "a"]}, nbody.WHOLE: {"state": ["a", "a"]}}
    assert nbody.same_bits(nbody.HALVES, figures) == figures
    figures["titin"]["state"] = ["a", "b"]
    with pytest.raises(SystemExit, match=r"32³, halves: .* do not all end in the same bits"):
        nbody.same_bits(nbody.HALVES, figures)


def test_a_program_that_fails_ends_the_others_and_shows_its_output(tmp_path):
    with pytest.raises(SystemExit, match="no such line"):
        nbody.together([["sh", "-c", "echo no such line; exit 3"], ["sleep", "1000"]], tmp_path)


def test_the_parts_of_the_code_find_what_the_whole_finds(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "packages", lambda: None)
    needs("mpicxx.openmpi", "mpirun.openmpi", "fftw-wisdom-to-conf")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    problem = nbody.Problem("small", 12, (1, 1, 1), steps=4, end=0.04, skipped=1)
    figures = [
        nbody.by_mpi(problem, tmp_path, []),
        nbody.by_mpi(problem, tmp_path, nbody.divided(problem)),
        nbody.by_paths(problem, tmp_path),
    ]
    assert len({figure["state"] for figure in figures}) == 1
    assert figures[0]["bytes"] == 0 < figures[2]["bytes"]
    assert all(figure["step"] > 0 for figure in figures)


def test_the_target_of_a_path_is_the_best_ping_pong():
    size = paths.AIMED
    figures = {
        "titin": {size: [6.0, 6.0]},
        paths.RAW: {size: [9.0, 9.0]},
        "8 sockets": {size: [7.0, 7.0]},
        "iperf3, 1 stream": {size: [5.0, 5.0]},
    }
    found = paths.message_records(paths.CELLS[0], [size], figures)
    assert [record.rival_name for record in found if record.target] == ["8 sockets"]
    figures["8 sockets"][size] = [5.0, 9.0]
    assert not any(record.target for record in paths.message_records(paths.CELLS[0], [size], figures))


def test_a_copy_that_is_wrong_is_no_result(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        assert copying.mixed(folder, copying.LINES["near"], 50) == "20 files of 1 B to 4 MiB"
    assert len(copying.sums(one)) == 20
    copying.check(one, one, "titin")
    with pytest.raises(SystemExit, match=r"titin has copied .* files wrongly, such as "):
        copying.check(one, other, "titin")


def test_the_rate_of_a_copy_is_without_the_start_of_the_other_end():
    figures = {
        "titin": [{copying.QUESTION: 12.0, copying.AGAIN: 2.0}] * 2,
        "scp -r": [{copying.QUESTION: 600.0}],
        copying.BARE: [{copying.RATE: 8.0}] * 2,
    }
    found = copying.records("case", figures, {"scp -r": 0.1})
    assert [(record.rival_name, record.ratio, record.target) for record in found] == [
        (copying.BARE, 1.25, copying.TO_BARE),
        ("scp -r", 0.02, 0.1),
    ]
    assert (found[1].rounds, found[1].rival_rounds) == (2, 1)


def test_parts_are_chosen_by_their_beginnings(monkeypatch):
    record = compare("?", "case", [(1.0, 2.0)], rival="other", unit="s")
    ran = []
    parts = {name: lambda quick, name=name: ran.append(name) or [record] for name in ("near/a", "near/b", "nearly")}
    monkeypatch.setenv("PARTS", "near")
    assert harness.in_parts("?", "PARTS", parts, "nearly", quick=True) == [record]
    assert ran == ["near/a", "near/b"]
    monkeypatch.setenv("PARTS", "nea")
    with pytest.raises(SystemExit, match="PARTS: there is no nea; there are near/a, near/b, nearly"):
        harness.in_parts("?", "PARTS", parts, "", quick=True)


def test_the_table_has_the_results_that_are_kept():
    readme = (ROOT / "benchmarks" / "README.md").read_text()
    for path in sorted(harness.RESULTS.glob("*.json")):
        records = [Record(**record) for record in json.loads(path.read_text())["records"]]
        assert records, path
        for record in harness.shown(records):
            assert f"| {record.case} | {record.titin:.4g} {record.unit} |" in readme, (path.name, record.case)


def test_the_tables_of_the_soak_have_all_tests_and_kills(tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "LOOKS", tmp_path)
    kill = {"times": 9, "median": 0.5, "longest": 1.25, "late": 0, "not_named": 1, "left": 2}
    soak.save({"test_that_cuts[light]": {"seconds": 7, "cuts": 3, "memory_mib": {"relay": 12.5}}}, quick=True)
    path = soak.save({"test_that_kills": {"seconds": 61, "kills": {"guard": kill}}}, quick=True)
    lines = soak.rows(json.loads(path.read_text()))
    today = date.today().isoformat()
    assert f"| that cuts[light] | {today} | 7 | cuts 3 | relay 12.5 |" in lines
    assert f"| that kills | {today} | 61 |  |  |" in lines
    assert "| that kills | guard | 9 | 0.50 s | 1.25 s | 0 | 1 | 2 |" in lines


def test_the_page_of_the_papers_is_of_the_results_that_are_kept():
    assert papers.PAGE.read_text() == papers.page()
