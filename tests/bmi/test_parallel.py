"""Models on several ranks: each equal to a loop by hand in one process, to the last bit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import replies
import shared
import zoo

from ..conftest import TITIN, needs
from .conftest import MODELS, NATIVE, PEER, bmi, python

TEMPERATURE, SOURCE = shared.TEMPERATURE, shared.SOURCE
CONFIG = {"dt": 0.5, "end": 3.0, "shape": [6, 7]}

pytestmark = pytest.mark.usefixtures("open_mpi")


@pytest.fixture
def open_mpi():
    needs("mpirun.openmpi")


def ranked(*words, **more):
    """A program of a description: a model on several ranks."""
    return bmi(*words, execution_model="openmpi", **more)


def pair_by_hand(config):
    """The plate and its cooler in one process: temperatures before each step and at the end, and sources."""
    plate, cooler = zoo.Heat(), shared.Cooler()
    for model in (plate, cooler):
        model.initialize(str(config))
    seen = []
    while plate.get_current_time() < plate.get_end_time():
        sent = plate.arrays[TEMPERATURE].copy(), cooler.arrays[SOURCE].copy()
        seen.append(sent)
        plate.set_value(SOURCE, sent[1].reshape(-1))
        cooler.set_value(TEMPERATURE, sent[0].reshape(-1))
        plate.update()
        cooler.update()
    return [*seen, (plate.arrays[TEMPERATURE].copy(), cooler.arrays[SOURCE].copy())]


@pytest.mark.parametrize(("plate_model", "plates", "coolers"), [("Slab", 2, 1), ("Slab", 2, 3), ("Handled", 2, 1)])
def test_two_models_exchange_fields(stage, plate_model, plates, coolers):
    """Each rank sends its part to the ranks that have it at the other end, whatever their number."""
    config = stage.write("config.json", json.dumps(CONFIG))
    end = [f"--variable=end={TEMPERATURE}"]
    cold = [f"--variable=cold={SOURCE}"]
    cooler = ranked if coolers > 1 else bmi
    stage.describe(
        {
            "plate": {"o_i": [TEMPERATURE], "s": [SOURCE], "o_f": ["end"]},
            "cooler": {"o_i": [SOURCE], "s": [TEMPERATURE], "o_f": ["cold"]},
            "first": {"f_init": ["got"], "o_f": ["give"]},
            "second": {"f_init": ["got"], "o_f": ["give"]},
        },
        {
            f"plate.{TEMPERATURE}": f"cooler.{TEMPERATURE}",
            f"cooler.{SOURCE}": f"plate.{SOURCE}",
            "plate.end": "first.got",
            "cooler.cold": "second.got",
        },
        {
            "plate": ranked(f"shared:{plate_model}", config, *end),
            "cooler": cooler("shared:Cooler", config, *cold),
            "first": PEER,
            "second": PEER,
        },
        ranks={"plate": plates, "cooler": coolers},
    )
    log = stage.ends_well()
    assert "WARNING" not in log
    temperature, source = pair_by_hand(config)[-1]
    for component, expected in (("first", temperature), ("second", source)):
        ((time, _, names, array, about),) = stage.kept(component)
        assert (time, names) == (3.0, ("y", "x"))
        assert array.tobytes() == expected.tobytes() and array.shape == expected.shape
        assert about["grid"]["shape"] == [6, 7] and about["grid"]["spacing"] == [0.5, 0.5]
    assert np.any(source) and np.any(temperature != temperature[0])
    done = subprocess.run([TITIN, "profile", stage.directory, "--json"], capture_output=True, text=True, check=True)
    sent = next(one for one in json.loads(done.stdout)["conduits"] if one["to"] == f"cooler.{TEMPERATURE}")
    assert sent["messages"] == 6 and sent["bytes"] < 6 * temperature.nbytes, "rank 0 sends its own half only"


def test_such_a_model_may_be_one_process(stage):
    """In a run, and where it is described; it gets the communicator of its process."""
    config = stage.write("config.json", json.dumps(CONFIG))
    stage.answered(["shared:Slab", config], TEMPERATURE, SOURCE, "cooling")
    stage.ends_well()
    kept = stage.kept("peer") + stage.kept("keep")
    assert [message[3].tobytes() for message in kept] == [u.tobytes() for u in by_hand(config, replies.cooling)]
    command = [sys.executable, "-m", "titin.bmi", "describe", "shared:Slab", config]
    env = os.environ | {"PYTHONPATH": str(MODELS)}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"- {TEMPERATURE}  # float64, 6 by 7 (y, x), K, grid 0" in done.stdout


def by_hand(config, reply):
    """The plate in one process, whose source is a reply to its temperature."""
    plate = zoo.Heat()
    plate.initialize(str(config))
    seen = []
    while plate.get_current_time() < plate.get_end_time():
        seen.append(plate.arrays[TEMPERATURE].copy())
        plate.set_value(SOURCE, np.asarray(reply(seen[-1], 0)).reshape(-1))
        plate.update()
    return [*seen, plate.arrays[TEMPERATURE].copy()]


def answered(stage, words, reply, ranks=2, out=TEMPERATURE, given=SOURCE, settings=None):
    """Describes a model on several ranks, which a serial program of titin's answers in each step."""
    stage.answered(words, out, given, reply, settings, ranks={"model": ranks})
    text = (stage.folder / "model.ymmsl").read_text()
    begin = text.index("programs:")
    changed = text[begin:].replace("  model:\n", "  model:\n    execution_model: openmpi\n", 1)
    stage.write("model.ymmsl", text[:begin] + changed)


@pytest.mark.parametrize(("model", "more"), [("Slab", []), ("Stacked", ["--blocks"])])
def test_a_serial_program_gets_and_gives_whole_arrays(stage, model, more):
    """With units and the grid of the whole, as from a model that is one process."""
    config = stage.write("config.json", json.dumps(CONFIG | ({"k": 0.0} if model == "Stacked" else {})))
    answered(stage, [f"shared:{model}", config, *more], "cooling")
    assert "WARNING" not in stage.ends_well()
    seen = by_hand(config, replies.cooling)
    kept = stage.kept("peer") + stage.kept("keep")
    assert len(kept) == len(seen) == 7
    for (_, _, names, array, _), expected in zip(kept, seen):
        assert (names, array.shape) == (("y", "x"), (6, 7))
        assert array.tobytes() == expected.tobytes()
    grid = kept[0][4]["grid"]
    assert (grid["shape"], grid["size"], kept[0][4]["units"]) == ([6, 7], 42, "K")


def test_single_numbers_are_those_of_rank_0_and_go_to_all(stage):
    """Beside the faces of a mesh, which have numbers; units are converted on the way in."""
    config = stage.write("config.json", json.dumps({"dt": 1.0, "end": 3.0}))
    names = {"height": "mesh_face__height", "total": "mesh__total", "rate": "mesh_face__rate", "factor": "mesh__factor"}
    ports = {"o_i": ["height", "total"], "s": ["rate", "factor"]}
    stage.describe(
        {
            "model": ports,
            "peer": {"f_init": ["got"], "o_f": ["give"]},
            "other": {"f_init": ["got"], "o_f": ["give"]},
        },
        {
            "model.height": "peer.got",
            "peer.give": "model.rate",
            "model.total": "other.got",
            "other.give": "model.factor",
        },
        {
            "model": ranked("shared:Mesh", config, *(f"--variable={port}={name}" for port, name in names.items())),
            "peer": PEER,
            "other": PEER,
        },
        {"peer.reply": "in_centimetres_a_second", "other.reply": "as_many"},
        ranks={"model": 3},
    )
    stage.ends_well()
    height, total = np.arange(8, dtype=np.float32), 0.0
    for (_, _, heights_names, heights, _), (_, _, _, sum_, about) in zip(stage.kept("peer"), stage.kept("other")):
        assert heights_names == ("face",) and heights.tobytes() == height.tobytes()
        assert sum_.shape == () and sum_ == total and about["units"] == "m"
        height = height + np.float32(2) * np.float32(total + 1)
        total = float(height.sum())
    assert len(stage.kept("other")) == 3


@pytest.mark.parametrize("unit", [None, "K min-1"])
def test_a_program_of_ones_own_has_fields_where_the_description_says_so(stage, unit):
    """The temperature is coupled in every second step, the source in each; a field has the unit that the user says."""
    config = stage.write("config.json", json.dumps(CONFIG))
    stage.describe(
        {
            "plate": {"o_i": [TEMPERATURE], "s": [SOURCE]},
            "thermostat": {"o_i": ["source"], "s": ["temperature"]},
        },
        {f"plate.{TEMPERATURE}": "thermostat.temperature", "thermostat.source": f"plate.{SOURCE}"},
        {
            "plate": ranked("shared:Slab", config, *([f"--unit={SOURCE}={unit}"] if unit else [])),
            "thermostat": python(MODELS / "thermostat.py"),
        },
        titin={"fields": {"thermostat.temperature": {"every": 2}, f"plate.{SOURCE}": {"every": 1}}},
        ranks={"plate": 2},
    )
    log = stage.ends_well()
    assert "WARNING" not in log
    assert (f"--unit {SOURCE}=UNIT" in log) == (unit is None)
    plate = zoo.Heat()
    plate.initialize(str(config))
    seen, u = [], np.zeros((6, 7))
    for step in range(6):
        plate.set_value(SOURCE, (0.01 * (50.0 - u) / (60 if unit else 1)).reshape(-1))
        if step % 2 == 0:
            u = plate.arrays[TEMPERATURE].copy()
            seen.append(u)
        plate.update()
    kept = np.load(stage.directory / "instances/thermostat/workdir/kept.npy")
    assert kept.tobytes() == np.stack(seen).tobytes()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """Models in C and in Fortran on several ranks, and the first of them as one process."""
    needs("mpicc.openmpi", "mpifort.openmpi")
    folder = tmp_path_factory.mktemp("ranks")
    shared_ = ["-shared", "-fPIC", "-O1", "-o"]
    for command in (
        ["mpicc.openmpi", "-DRANKS", *shared_, "libriver.so", NATIVE / "river.c"],
        ["mpifort.openmpi", *shared_, "libglacier.so", NATIVE / "glacier.f90"],
        ["mpicc.openmpi", "-DRANKS", *shared_, "libaquifer.so", NATIVE / "aquifer.c"],
        ["gcc", *shared_, "libalone.so", NATIVE / "river.c"],
        [
            "gcc",
            "-DENTRY=register_bmi_river",
            "-o",
            "river",
            NATIVE / "loop.c",
            "-L.",
            "-l:libalone.so",
            "-Wl,-rpath,$ORIGIN",
        ],
    ):
        done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder


def test_a_library_in_c(stage, libraries):
    """The functions of a parallel model are exported beside the entry."""
    config = stage.write("config.txt", "7 0.5 4\n")
    answered(stage, [f"{libraries}/libriver.so:register_bmi_river", config], "half", 3, "river__depth", "river__inflow")
    stage.ends_well()
    command = [libraries / "river", config, "river__depth", "river__inflow", "7", "8"]
    seen = np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout).reshape(-1, 7)
    kept = stage.kept("peer") + stage.kept("keep")
    assert len(kept) == len(seen) == 9
    assert np.stack([message[3] for message in kept]).tobytes() == seen.tobytes()


def test_a_library_in_fortran(stage, libraries):
    """The columns are dealt out, and told by their numbers."""
    config = stage.write("config.txt", "")
    answered(stage, [f"{libraries}/libglacier.so", config], "half", 2, "ice__height", "ice__fallen")
    stage.ends_well()
    height = 100.0 + np.arange(11)
    for _, _, names, array, _ in stage.kept("peer") + stage.kept("keep"):
        assert names == ("node",) and array.tobytes() == height.tobytes()
        height = height * 0.5 + (0.5 * height + 1)
    assert len(stage.kept("peer")) == 4


def test_a_library_by_the_convention_of_xmipy(stage, libraries):
    """It is initialized by `initialize_mpi`, as MODFLOW 6 is, in the folder of its configuration."""
    folder = stage.folder / "ground"
    folder.mkdir()
    config = folder / "aquifer.txt"
    config.write_text("0.5 2 2\n")
    words = [f"{libraries}/libaquifer.so", config, "--time-units=d"]
    answered(stage, words, "half", 2, "GWF/HEAD", "GWF/RECHARGE")
    stage.ends_well()
    head = 10 - 0.3 * np.arange(12.0).reshape(3, 4)
    for _, _, names, array, _ in stage.kept("peer") + stage.kept("keep"):
        assert names == ("y", "x") and array.tobytes() == head.tobytes()
        head = head + 0.5 * ((0.5 * head + 1) - 0.01 * 2 * head)
    assert len(stage.kept("peer")) == 4


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("raises", ["ArithmeticError: rank 1 is broken", "in initialize('"]),
        ("untold", ["does not tell which part of", "get_grid_partition_range or get_grid_global_node_nr", "--blocks"]),
        ("inclusive", ["get_grid_partition_range(0)", "nodes, and", "the first index behind"]),
        ("outside", ["get_grid_partition_range(0)", "the shape is that of the whole grid"]),
        ("twice", ["of plate_surface__temperature is of rank 0 and of rank 1", "get_grid_node_partition"]),
    ],
)
def test_what_a_model_tells_wrongly(stage, fault, said):
    config = stage.write("config.json", json.dumps(CONFIG | {"fault": fault}))
    answered(stage, ["shared:Wrong", config], "cooling")
    page = stage.fails()
    for text in said:
        assert text in page, page


def test_without_mpi4py(stage, monkeypatch):
    """The text of the error tells what to install."""
    (stage.folder / "mpi4py").mkdir()
    (stage.folder / "mpi4py/__init__.py").write_text("raise ImportError('not here')")
    config = stage.write("config.json", json.dumps(CONFIG))
    answered(stage, ["shared:Slab", config], "cooling")
    text = (stage.folder / "model.ymmsl").read_text()
    first = text.index("PYTHONPATH: ") + len("PYTHONPATH: ")
    stage.write("model.ymmsl", f"{text[:first]}{stage.folder}:{text[first:]}")
    page = stage.fails()
    assert "needs mpi4py" in page and "pip install mpi4py" in page
