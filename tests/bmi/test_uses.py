"""Uses of a model: F_INIT and O_F ports, settings in the configuration, times, and what messages tell."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
import replies
import titin
import zoo
from titin.bmi.exchange import Messages
from titin.bmi.model import Model
from titin.bmi.parallel import Ranks
from titin.bmi.ports import Variable

from ..conftest import TITIN
from .conftest import MODELS, PEER, bmi, python

TEMPLATE = '{"dt": {dt:s}, "end": {steps}, "note": "{{dt}}", "level": 0.0, "wet": {wet}, "table": {table}}'


def called(stage, program, levels=(2.0, 3000.0, 4.0), settings=None):
    """Describes a tank that a program uses three times."""
    stage.describe(
        {"driver": {"o_i": ["ask"], "s": ["answer"]}, "tank": {"f_init": ["start"], "o_f": ["final"]}},
        {"driver.ask": "tank.start", "tank.final": "driver.answer"},
        {"driver": python(MODELS / "driver.py"), "tank": program},
        {"driver.levels": list(levels), "steps": 9, "dt": "500 ms", "wet": True, "table": [[1.0, 2.5]]}
        | (settings or {}),
    )


def expected(stage, level, steps):
    config = stage.write("expected.json", json.dumps({"dt": 0.5, "end": steps}))
    tank = zoo.Tank()
    tank.initialize(str(config))
    tank.set_value("tank__level", np.array([level]))
    while tank.get_current_time() < tank.get_end_time():
        tank.update()
    return tank.arrays["tank__level"][0]


def test_a_model_is_used_again_with_other_settings(stage):
    config = stage.write("tank.json", TEMPLATE)
    names = ["--variable=start=tank__level", "--variable=final=tank__level"]
    called(stage, bmi("zoo:Tank", config, *names))
    assert "WARNING" not in stage.ends_well()
    kept = stage.kept("driver")
    # The second use gets litres in single precision.
    levels = [2.0, float(np.float32(3000.0)) / 1000, 4.0]
    assert [data for _, data, _ in kept] == [expected(stage, level, n + 1) for n, level in enumerate(levels)]
    assert [time for time, _, _ in kept] == [1.0, 102.0, 203.0]
    assert all(told for _, _, told in kept)
    filled = json.loads((stage.directory / "instances/tank/workdir/tank.json").read_text())
    assert filled == {"dt": 0.5, "end": 3, "note": "{dt}", "level": 0.0, "wet": True, "table": [[1.0, 2.5]]}


@pytest.mark.parametrize("program", ["described", "titin.bmi"])
def test_settings_stand_for_arguments(stage, program):
    config = stage.write("tank.json", TEMPLATE)
    settings = {
        "tank.bmi": f"{MODELS}/zoo.py:Tank",
        "tank.bmi_config": str(config),
        "tank.bmi_variables": "{start: tank__level, final: tank__level}",
        "tank.bmi_metadata": False,
        "tank.bmi_end": "1 s",
    }
    called(stage, bmi(), settings=settings)
    if program == "titin.bmi":
        description = (stage.folder / "model.ymmsl").read_text()
        assert description.count("implementation: tank\n") == 1
        stage.write("model.ymmsl", description.replace("implementation: tank\n", "implementation: titin.bmi\n"))
    stage.ends_well()
    kept = stage.kept("driver")
    levels = [2.0, float(np.float32(3000.0)) / 1000, 4.0]
    assert [data for _, data, _ in kept] == [expected(stage, level, 1) for level in levels]
    assert not any(told for _, _, told in kept)


def test_messages_tell_units_always_and_the_grid_once(stage):
    config = stage.write("config.json", json.dumps({"end": 2.0}))
    stage.answered(["zoo:Mesh", config], "mesh_node__height", "mesh_face__rate", "rain")
    stage.ends_well()
    first, second = (message[4] for message in stage.kept("peer"))
    assert second == {"units": "m"}
    grid = first.pop("grid")
    assert first == {"units": "m", "variable": "mesh_node__height", "location": "node"}
    assert {key: np.asarray(value).tolist() for key, value in grid.items()} == {
        "id": 0,
        "type": "unstructured",
        "rank": 2,
        "size": 6,
        "x": [0, 1, 2, 0, 1, 2],
        "y": [0, 0, 0, 1, 1, 1],
        "edge_nodes": [0, 1, 1, 2, 0, 3, 1, 4, 2, 5, 3, 4, 4, 5, 1, 5],
        "nodes_per_face": [4, 3, 3],
        "face_nodes": [0, 1, 4, 3, 1, 2, 5, 1, 5, 4],
    }
    # Hours are seconds in timestamps.
    assert [message[0] for message in stage.kept("peer")] == [0.0, 3600.0]


@pytest.mark.parametrize(
    ("name", "out", "given", "names", "grid"),
    [
        (
            "Heat",
            "plate_surface__temperature",
            "plate_surface__heat_source",
            ("y", "x"),
            {"type": "uniform_rectilinear", "shape": [5, 7], "spacing": [0.5, 0.5], "origin": [0.0, 0.0]},
        ),
        (
            "Layers",
            "layer__head",
            "layer__flux",
            ("z", "y", "x"),
            {"type": "rectilinear", "shape": [2, 3, 4], "x": [0, 1, 3, 7], "y": [0, 1, 3], "z": [0, -5]},
        ),
        ("Wells", "well__count", "well__pumped_count", ("node",), {"type": "points", "x": [0.0, 10.0, 20.0, 30.0]}),
        ("Edges", "grid_face__sum", "grid_edge__flux", ("face",), {"type": "uniform_rectilinear", "shape": [3, 4]}),
        ("Tank", "tank__level", "tank__inflow", None, {"type": "scalar", "rank": 0}),
    ],
)
def test_arrays_have_names_and_grids(stage, name, out, given, names, grid):
    config = stage.write("config.json", json.dumps({"end": 1.0}))
    stage.answered([f"zoo:{name}", config], out, given, "nothing")
    stage.ends_well()
    ((_, _, found, _, about),) = stage.kept("peer")
    assert found == names
    told = {key: np.asarray(value).tolist() for key, value in about["grid"].items()}
    assert {key: told[key] for key in grid} == grid


def test_arrays_alone_serve_filters_and_sinks(stage):
    config = stage.write("config.json", json.dumps({"end": 3.0, "shape": [4, 5]}))
    name = "plate_surface__temperature"
    stage.describe(
        {"plate": {"o_i": [name]}, "keep": {"f_init": ["in"]}, "all": {"s": ["in"]}},
        {f"plate.{name}": ["astype(float32) all.in", "last keep.in"]},
        {"plate": bmi("zoo:Heat", config, "--no-metadata"), "keep": None, "all": None},
        {"file": "kept.npy"},
    )
    text = (stage.folder / "model.ymmsl").read_text()
    text = text.replace("implementation: keep", "implementation: titin.sink").replace(
        "implementation: all", "implementation: titin.sink"
    )
    stage.write("model.ymmsl", text.replace("  keep: null\n  all: null\n", ""))
    stage.ends_well()
    every = np.load(stage.directory / "instances/all/workdir/kept.npy")
    assert every.shape == (3, 4, 5) and every.dtype == np.float32
    assert np.load(stage.directory / "instances/keep/workdir/kept.npy").shape == (4, 5)


# The Julian year is titin's year; UDUNITS has another one.
@pytest.mark.parametrize(("unit", "step"), [("min", 60.0), ("h", 1.0), ("ms", 3.6e6), ("yr", 3600 / (365.25 * 86400))])
def test_timestamps_have_the_unit_of_the_description(stage, unit, step):
    config = stage.write("config.json", json.dumps({"end": 2.0}))
    stage.answered(["zoo:Mesh", config], "mesh_node__height", "mesh_face__rate", "rain", titin={"time_unit": unit})
    stage.ends_well()
    assert [message[:2] for message in stage.kept("peer")] == [(0.0, step), (step, None)]


def test_ports_may_have_intervals_of_their_own(stage):
    """One port in each step, another in every second."""
    config = stage.write("config.json", json.dumps({"dt": 1.0, "end": 4.0}))
    name = "plate_surface__temperature"
    stage.describe(
        {"plate": {"o_i": ["often", "seldom"]}, "one": {"f_init": ["got"]}, "two": {"f_init": ["got"]}},
        {"plate.often": "one.got", "plate.seldom": "two.got"},
        {
            "plate": bmi(
                "zoo:Heat", config, f"--variable=often={name}", f"--variable=seldom={name}", "--every=seldom=2 s"
            ),
            "one": PEER,
            "two": PEER,
        },
    )
    stage.ends_well()
    assert [message[:2] for message in stage.kept("one")] == [(0, 1), (1, 2), (2, 3), (3, None)]
    assert [message[:2] for message in stage.kept("two")] == [(0, 2), (2, None)]


def test_a_model_without_steps_goes_to_its_end_at_once(stage):
    config = stage.write("config.json", json.dumps({"end": 3.5}))
    stage.describe(
        {"event": {"o_f": ["queue__length"]}, "keep": {"f_init": ["got"]}},
        {"event.queue__length": "keep.got"},
        {"event": bmi("zoo:Event", config), "keep": PEER},
    )
    stage.ends_well()
    event = zoo.Event()
    event.initialize(str(config))
    event.update_until(3.5)
    ((time, _, _, array, _),) = stage.kept("keep")
    assert (time, array) == (210.0, event.arrays["queue__length"][0])


def test_titin_alone_loads_none_of_it():
    code = "import sys, titin; titin.Instance; print([name for name in sys.modules if name.startswith('titin.bmi')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_what_is_sent_and_received_is_not_copied(stage):
    """The array of a message is the model's memory, and a model gets the memory of the message."""
    config = stage.write("config.json", json.dumps({"shape": [4, 6]}))
    heat = Given()
    heat.initialize(str(config))
    model, grids, wire = Model("heat", heat), {}, Wire()
    out = Messages(wire, Variable(model, "plate_surface__temperature", "out", grids), Ranks(), True, None)
    out.send(out.taken(), 0.0)
    sent = wire.sent["data"]
    assert sent.names == ("y", "x")
    assert np.shares_memory(sent, heat.arrays["plate_surface__temperature"])
    received = np.ones((4, 6))
    received.flags.writeable = False
    wire.came = titin.Message({"data": received, "units": "K s-1"}, 3.0)
    given = Messages(wire, Variable(model, "plate_surface__heat_source", "in", grids), Ranks(), True, None)
    assert given.receive() == 3.0
    assert np.shares_memory(heat.given, received)


class Wire:
    """What stands for an instance: keeps what is sent, and has what comes."""

    def send(self, port, data, **more):
        self.sent = data

    def receive(self, port):
        return self.came


class Given(zoo.Heat):
    """A plate that keeps what it is given."""

    def set_value(self, name, src):
        self.given = src


def test_the_profile_counts_one_copy(stage):
    """That of the medium, out of memory that the model goes on to change."""
    config = stage.write("config.json", json.dumps({"shape": [200, 200], "end": 4.0}))
    name = "plate_surface__temperature"
    stage.describe(
        {"plate": {"o_i": [name]}, "keep": {"f_init": ["got"]}},
        {f"plate.{name}": "keep.got"},
        {"plate": bmi("zoo:Heat", config), "keep": PEER},
    )
    stage.ends_well()
    done = subprocess.run([TITIN, "profile", stage.directory, "--json"], capture_output=True, text=True, check=True)
    (conduit,) = json.loads(done.stdout)["conduits"]
    assert conduit["messages"] == 4
    assert 4 * 320_000 <= conduit["copied"] <= conduit["bytes"] < 4 * 321_000


@pytest.mark.parametrize(("end", "count"), [("0.75 s", 2), ("2 s", 4)])
def test_a_use_may_end_within_a_step(stage, end, count):
    config = stage.write("config.json", json.dumps({"dt": 0.5, "end": 100.0}))
    words = ["zoo:Heat", config, f"--end={end}"]
    stage.answered(words, "plate_surface__temperature", "plate_surface__heat_source", "cooling")
    stage.ends_well()
    heat = zoo.Heat()
    heat.initialize(str(config))
    until = float(end.split()[0])
    for step in range(count):
        heat.set_value(
            "plate_surface__heat_source", replies.cooling(heat.arrays["plate_surface__temperature"], 0).ravel()
        )
        heat.update_until(min((step + 1) * 0.5, until))
    ((time, _, _, array, _),) = stage.kept("keep")
    assert len(stage.kept("peer")) == count
    assert time == until
    assert array.tobytes() == heat.arrays["plate_surface__temperature"].tobytes()
