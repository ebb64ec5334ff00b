"""Models of every kind, each in a run and beside a loop by hand in one process: equal to the last bit."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import replies
import xmipy
import zoo
from coupled import Plate

from .conftest import PEER, bmi

CENTI = np.float32(10)


def by_hand(model, config, out, given, answer):
    """The loop around a model: what ``out`` holds before each step and at the end."""
    model.initialize(str(config))
    seen = []
    while model.get_current_time() < model.get_end_time():
        got = model.get_value_ptr(out) if not isinstance(model, zoo.Tank) else model.arrays[out]
        seen.append(got.copy())
        model.set_value(given, np.asarray(answer(got, model.get_current_time())).reshape(-1))
        model.update()
    seen.append(model.arrays[out].copy() if hasattr(model, "arrays") else model.get_value_ptr(out).copy())
    model.finalize()
    return seen


CASES = {
    # class: output, input, the reply of the peer, and the same in the units of the model
    "Heat": ("plate_surface__temperature", "plate_surface__heat_source", "cooling", replies.cooling),
    "Rod": ("rod__temperature", "rod__end_temperature", "mean_in_kelvin", lambda u, t: np.mean(u) + 280.0 - 273.15),
    "Tank": ("tank__level", "tank__inflow", "inflow_in_cubic_metres", lambda u, t: (0.02 + t / 1000) * 1000),
    "Mesh": (
        "mesh_node__height",
        "mesh_face__rate",
        "rain",
        lambda u, t: np.array([1.5, 2.5, 3.5], np.float32) * np.float32(u[0] + 1) * CENTI,
    ),
    "Wells": ("well__count", "well__pumped_count", "odd", replies.odd),
    "Edges": ("grid_face__sum", "grid_edge__flux", "seventeen", lambda u, t: np.full(17, u[0] + 1)),
    "Layers": ("layer__head", "layer__flux", "flux_in_fortran_order", lambda u, t: 0.01 * u),
}


@pytest.mark.parametrize("name", CASES)
def test_a_model_in_python(stage, name):
    out, given, reply, answer = CASES[name]
    config = stage.write("config.json", json.dumps({"dt": 0.5, "end": 3.0}))
    stage.answered([f"zoo:{name}", config], out, given, reply)
    log = stage.ends_well()
    assert "WARNING" not in log
    seen = by_hand(getattr(zoo, name)(), config, out, given, answer)
    kept = stage.kept("peer") + stage.kept("keep")
    assert len(kept) == len(seen) == 7
    for (_, _, _, array, _), expected in zip(kept, seen):
        assert array.dtype == expected.dtype
        assert array.tobytes() == expected.tobytes()
    shape = () if name == "Tank" else seen[0].shape
    assert {message[3].shape for message in kept} == {shape}


@pytest.mark.parametrize(
    ("program", "entry", "out", "given", "kind", "shape"),
    [
        ("river", ":register_bmi_river", "river__depth", "river__inflow", np.float64, (6,)),
        ("snow", "", "snow__depth", "snow__fallen", np.float32, (3, 4)),
    ],
)
def test_a_library_by_the_c_entry(stage, native, program, entry, out, given, kind, shape):
    config = stage.write("config.txt", "6 0.5 4\n")
    stage.answered([f"{native}/lib{program}.so{entry}", config], out, given, "half")
    assert "WARNING" not in stage.ends_well()
    command = [native / program, config, out, given, str(np.prod(shape)), str(kind().itemsize)]
    seen = np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, kind).reshape(-1, *shape)
    kept = stage.kept("peer") + stage.kept("keep")
    assert len(kept) == len(seen) == 9
    assert np.stack([message[3] for message in kept]).tobytes() == seen.tobytes()
    assert {message[3].dtype for message in kept} == {np.dtype(kind)}


def test_a_library_by_the_convention_of_xmipy(stage, native):
    folder = stage.folder / "ground"
    folder.mkdir()
    config = folder / "aquifer.txt"
    config.write_text("0.5 3 2\n")
    words = [f"{native}/libaquifer.so", config, "--time-units=d"]
    stage.answered(words, "GWF/HEAD", "GWF/RECHARGE", "half")
    assert "WARNING" not in stage.ends_well()

    model = xmipy.XmiWrapper(str(native / "libaquifer.so"), working_directory=str(folder))
    seen = by_hand(model, config, "GWF/HEAD", "GWF/RECHARGE", replies.half)
    kept = stage.kept("peer") + stage.kept("keep")
    assert [message[0] for message in kept] == [86400 * 0.5 * step for step in range(7)]
    assert [message[3].tobytes() for message in kept] == [array.tobytes() for array in seen]
    assert kept[0][2] == ("y", "x")
    assert kept[0][4]["grid"]["x"].tolist() == [5.0, 15.0, 25.0, 35.0]


@pytest.mark.parametrize("every", ["1 min", "90 s"])
def test_a_model_without_steps(stage, every):
    config = stage.write("config.json", json.dumps({"end": 6.0}))
    stage.answered(["zoo:Event", config, f"--every={every}"], "queue__length", "queue__arrivals", "as_many")
    assert "WARNING" not in stage.ends_well()
    interval = {"1 min": 1.0, "90 s": 1.5}[every]

    model, seen = zoo.Event(), []
    model.initialize(str(config))
    for step in range(round(6 / interval)):
        seen.append(model.arrays["queue__length"].copy())
        model.set_value("queue__arrivals", seen[-1] + 1)
        model.update_until((step + 1) * interval)
    seen.append(model.arrays["queue__length"])
    kept = stage.kept("peer") + stage.kept("keep")
    assert [message[3].tobytes() for message in kept] == [array.tobytes() for array in seen]
    assert [message[0] for message in kept] == [60 * interval * step for step in range(len(seen))]
    assert [message[1] for message in kept] == [*(message[0] for message in kept[1:-1]), None, None]


def test_whole_steps_stand_for_a_longer_interval(stage):
    """A model that has only whole steps is asked for two of them at once."""
    config = stage.write("config.json", json.dumps({"dt": 0.1, "end": 2.0}))
    stage.answered(
        ["zoo:Whole", config, "--every=0.2"], "plate_surface__temperature", "plate_surface__heat_source", "cooling"
    )
    stage.ends_well()
    model = zoo.Whole()
    model.initialize(str(config))
    seen = []
    for _ in range(10):
        seen.append(model.arrays["plate_surface__temperature"].copy())
        model.set_value("plate_surface__heat_source", replies.cooling(seen[-1], 0).reshape(-1))
        model.update()
        model.update()
    seen.append(model.arrays["plate_surface__temperature"])
    kept = stage.kept("peer") + stage.kept("keep")
    assert [message[3].tobytes() for message in kept] == [array.tobytes() for array in seen]


def test_two_models_step_together(stage):
    """Two plates that get each other's temperature as their source, one with an interval of its own."""
    one = stage.write("one.json", json.dumps({"dt": 0.25, "end": 2.0}))
    two = stage.write("two.json", json.dumps({"dt": 0.5, "end": 2.0, "peak": 10.0, "shape": [5, 7]}))
    ports = {"o_i": ["plate_surface__temperature"], "s": ["plate_surface__heat_source"], "o_f": ["end"]}
    end = "--variable=end=plate_surface__temperature"
    program = bmi("coupled:Plate", one, end, "--every=500 ms")
    stage.describe(
        {"one": ports, "two": ports, "first": {"f_init": ["got"]}, "second": {"f_init": ["got"]}},
        {
            "one.plate_surface__temperature": "two.plate_surface__heat_source",
            "two.plate_surface__temperature": "one.plate_surface__heat_source",
            "one.end": "first.got",
            "two.end": "second.got",
        },
        {"one": program, "two": bmi("coupled:Plate", two, end), "first": PEER, "second": PEER},
    )
    stage.ends_well()

    plates = [Plate(), Plate()]
    for plate, config in zip(plates, (one, two)):
        plate.initialize(str(config))
    for step in range(4):
        sent = [plate.arrays["plate_surface__temperature"].copy() for plate in plates]
        for plate, values in zip(plates, reversed(sent)):
            plate.set_value("plate_surface__heat_source", values.reshape(-1))
        plates[0].update_until((step + 1) * 0.5)
        plates[1].update()
    for plate, component in zip(plates, ("first", "second")):
        ((_, _, _, array, _),) = stage.kept(component)
        assert array.tobytes() == plate.arrays["plate_surface__temperature"].tobytes()


def test_a_landlab_component(stage):
    """Landlab's diffusion of hills by `wrap_as_bmi`, over 20 by 30 nodes."""
    pytest.importorskip("landlab", reason="a large package: pip install landlab")
    import hills

    config = stage.write("hills.yaml", (Path(hills.__file__).with_name("hills.yaml")).read_text())
    name = "topographic__elevation"
    stage.answered(["hills:Hills", config], name, name, "half")
    stage.ends_well()
    model = hills.Hills()
    model.initialize(str(config))
    seen = []
    while model.get_current_time() < model.get_end_time():
        seen.append(model.get_value_ptr(name).copy())
        model.set_value(name, replies.half(seen[-1], 0))
        model.update()
    seen.append(model.get_value_ptr(name))
    kept = stage.kept("peer") + stage.kept("keep")
    assert [message[3].tobytes() for message in kept] == [array.tobytes() for array in seen]
    assert kept[0][3].shape == (20, 30)
    assert kept[0][4]["grid"]["spacing"] == [2.0, 3.0]
    assert kept[1][0] == 10 * 31556925.9747
