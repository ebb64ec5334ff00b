"""Bad input: each ends the run, and the page names the model's instance, what is wrong and what to do."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .conftest import MODELS, PEER, bmi, python

OUT, IN = "plate_surface__temperature", "plate_surface__heat_source"
ANSWERED = [f"--variable=out={OUT}", f"--variable=last={OUT}", f"--variable=in={IN}"]


def answered(stage, words, reply="cooling", **more):
    """The page of a run of a plate and a peer that answers it."""
    config = stage.write("config.json", json.dumps({"dt": 0.1, "end": 0.5}))
    words = [config if word == "CONFIG" else word for word in words]
    stage.answered(words, OUT, IN, reply, **more)
    return stage.fails()


# What the run is asked for, and what its page says.
CASES = [
    (["nowhere.heat:Heat", "CONFIG"], ["no module nowhere", "nowhere.heat:Heat", "has looked in", "PYTHONPATH"]),
    (["zoo.heat:Heat", "CONFIG"], ["no module zoo.heat"]),
    (["/nowhere/heat.py:Heat", "CONFIG"], ["there is no file /nowhere/heat.py"]),
    (["zoo:Heet", "CONFIG"], ["zoo.py has no Heet", "Heat may be meant"]),
    (["zoo:np", "CONFIG"], ["zoo:np is module", "not a class"]),
    (["zoo", "CONFIG"], ["'zoo' names no model", "package.module:Class"]),
    (["bad:Lacking", "CONFIG"], ["bad:Lacking lacks finalize, get_input_var_names", "and set_value"]),
    (["bad:Abstract", "CONFIG"], ["bad:Abstract lacks", "update_until"]),
    (["zoo:Heat", "heat.json"], ["there is no configuration", "/workdir/heat.json", "titin: stage"]),
    (["bad:Shape", "CONFIG"], ["get_value_ptr('plate_surface__temperature') of bad:Shape", "14 values", "5 by 7"]),
    (["bad:Type", "CONFIG"], ["returned float32, and get_var_type tells float64"]),
    (["bad:List", "CONFIG"], ["returned list, and not an array of NumPy"]),
    (["bad:GridShape", "CONFIG"], ["tells 35 values", "get_grid_shape(0) returned 3 by 3, which are 9"]),
    (["bad:Quaternion", "CONFIG"], ["'quaternion', which names no type of numbers"]),
    (["bad:Raises", "CONFIG"], ["negative depth in cell 17", "in update() of bad:Raises, at time 0.2", "bad.py"]),
    (["bad:Back", "CONFIG"], ["bad:Back has gone back from time 0 s to -1 in update"]),
    (["bad:Still", "CONFIG"], ["bad:Still has stood still at time 0 s in update"]),
    (["bad:Fortnights", "CONFIG"], ["unit of time of bad:Fortnights", "'fortnights' is no unit"]),
    (["bad:Endless", "CONFIG"], ["bad:Endless has no end", "--end"]),
    (["bad:Timeless", "CONFIG"], ["get_end_time() of bad:Timeless returned None, and not a number"]),
    (["bad:Steps", "CONFIG"], ["get_time_step() of bad:Steps returned 0, and not a step above 0"]),
    (["bad:Ending", "CONFIG"], ["OSError: the disk is full", "in finalize() of bad:Ending"]),
    (["zoo:Whole", "CONFIG", "--every=0.25"], ["zoo:Whole, whose step is 0.1 s, does not go from 0 to 0.25 s"]),
    (["bad:Far", "CONFIG", "--every=0.25"], ["bad:Far", "does not go from 0 to 0.25", "it has gone to 0.3"]),
    (["zoo:Heat", "CONFIG", "--every=others=1 s"], ["names others", "there are out, in"]),
    (["zoo:Heat", "CONFIG", "--every=in=soon"], ["bmi_every of in", "'soon' is no time"]),
    (["zoo:Heat", "CONFIG", "--end=1 m"], ["bmi_end: 'm' is in m, and no time"]),
    (["zoo:Heat", "CONFIG", "--variable=inn=x"], ["port inn", "does not have", "in may be meant"]),
    (["/nowhere/libheat.so", "CONFIG"], ["there is no library /nowhere/libheat.so"]),
    (["libheat.so", "CONFIG"], ["the library libheat.so cannot be loaded", "LD_LIBRARY_PATH"]),
    (["libm.so.6:register_bmi", "CONFIG"], ["libm.so.6 has no function register_bmi"]),
    (["libm.so.6", "CONFIG"], ["neither register_bmi nor", "lacks initialize, update, get_current_time"]),
    ([], ["model has no model", "package.module:Class", "setting bmi"]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "said"), CASES, ids=[" ".join(words) or "nothing" for words, _ in CASES])
def test_a_model_that_cannot_be_used(stage, words, said):
    page = answered(stage, words)
    assert "First:    model reported an error" in page
    for text in said:
        assert text in page


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("words", ["on port in came str, and no numbers"]),
        (
            "too_small",
            ["on port in has the shape (2, 3)", f"{IN} of zoo:Heat has (5, 7)", "maps one grid to the other"],
        ),
        ("other_map", ["on port in came a map with values", "'data'"]),
        ("in_metres", ["on port in is in 'm'", f"{IN} of zoo:Heat in 'K s-1'", "'m' is in m, and 'K s-1' is in s-1 K"]),
        ("in_furlongs", ["on port in is in 'furlong'", "'furlong' is no unit that titin knows"]),
    ],
)
def test_data_that_do_not_fit(stage, reply, said):
    page = answered(stage, ["zoo:Heat", "CONFIG"], reply)
    assert "First:    model reported an error" in page
    for text in said:
        assert text in page


def test_units_are_compared_before_the_first_step(stage):
    answered(stage, ["bad:Noisy", "CONFIG"], "in_metres")
    assert (stage.directory / "instances/model/stdout.txt").read_text() == ""


@pytest.mark.parametrize(
    ("reply", "said"),
    [("real", "is float64, and well__pumped_count of zoo:Wells is int32"), ("large", "cannot hold")],
)
def test_numbers_that_the_type_cannot_hold(stage, reply, said):
    config = stage.write("config.json", "{}")
    stage.answered(["zoo:Wells", config], "well__count", "well__pumped_count", reply)
    assert said in stage.fails()


def test_nil_leaves_the_variable_as_it_is(stage):
    config = stage.write("config.json", json.dumps({"end": 2.0}))
    stage.answered(["zoo:Wells", config], "well__count", "well__pumped_count", "nil")
    stage.ends_well()
    assert stage.kept("keep")[0][3].tolist() == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("operator", "port", "said"),
    [
        ("s", IN + "s", [f"port {IN}s (S) names no input variable of zoo:Heat; {IN} may be meant"]),
        (
            "s",
            "x",
            [
                "port x (S) names no input variable of zoo:Heat: give",
                "--variable x=VARIABLE",
                "bmi_variables",
                "`variables` beside",
            ],
        ),
        ("s", OUT, [f"port {OUT} (S) receives, but {OUT} is an output variable of zoo:Heat only", IN]),
        ("f_init", OUT, [f"port {OUT} (F_INIT) receives"]),
        ("o_i", IN, [f"port {IN} (O_I) sends, but {IN} is an input variable of zoo:Heat only", OUT]),
    ],
)
def test_a_port_that_names_no_variable(stage, operator, port, said):
    config = stage.write("config.json", "{}")
    other, peer = ("got", {"f_init": ["got"]}) if operator == "o_i" else ("give", {"f_init": ["x"], "o_f": ["give"]})
    ports = {"model": {operator: [port]}, "peer": peer}
    conduit = {f"model.{port}": f"peer.{other}"} if operator == "o_i" else {f"peer.{other}": f"model.{port}"}
    if operator == "s":
        ports["peer"] = {"o_i": ["ask"], "s": ["x"], "o_f": ["unused"]}
        conduit = {"peer.ask": f"model.{port}"}
    stage.describe(ports, conduit, {"model": bmi("zoo:Heat", config), "peer": python("-c", _WAITS)})
    page = stage.fails()
    assert "First:    model reported an error" in page
    for text in said:
        assert text in page


# A program with any ports that sends once and then waits for the end of the run.
_WAITS = """
import titin
with titin.Instance() as instance:
    instance.reuse()
    for port in instance.ports.values():
        if port.connected and port.operator in ("o_i", "o_f"):
            instance.send(port, 1.0, timestamp=0.0)
"""


def test_a_port_with_slots(stage):
    config = stage.write("config.json", "{}")
    ports = {"model": {"o_i": [OUT]}, "peer": {"f_init": ["got"]}}
    stage.describe(ports, {f"model.{OUT}": "peer.got"}, {"model": bmi("zoo:Heat", config), "peer": PEER})
    path = stage.folder / "model.ymmsl"
    path.write_text(path.read_text().replace("implementation: peer", "implementation: peer\n        multiplicity: 3"))
    page = stage.fails()
    assert f"port {OUT} (O_I) has 3 slots, and {OUT} has the shape [5, 7]: slots are taken from the first" in page
    assert "titin.splitter" in page


def test_a_place_without_a_setting(stage):
    config = stage.write("places.json", '{"dt": 0.1,\n "peak": {paek}}')
    stage.answered(["zoo:Heat", config], OUT, IN, "cooling", {"model.peak": 3.0})
    page = stage.fails()
    assert "places.json, line 2: the place {paek} cannot be filled in" in page
    assert "peak" in page.split("may be meant")[0].rpartition(";")[2]


def test_a_library_that_fails(stage, native):
    config = stage.write("config.txt", "nothing")
    stage.answered([f"{native}/libriver.so:register_bmi_river", config], "river__depth", "river__inflow", "half")
    assert "the library's initialize has returned a failure" in stage.fails()
    stage.answered([f"{native}/libaquifer.so", config, "--time-units=d"], "GWF/HEAD", "GWF/RECHARGE", "half")
    assert "the library's initialize has failed: aquifer.txt cannot be read" in stage.fails()


def test_a_model_without_a_unit_of_time(stage, native):
    config = stage.write("aquifer.txt", "0.5 3 2\n")
    stage.answered([f"{native}/libaquifer.so", config], "GWF/HEAD", "GWF/RECHARGE", "half")
    page = stage.fails()
    assert "the unit of time of" in page and "get_time_units tells none" in page and "--time-units" in page


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"bmi_metadata": "perhaps"}, "bmi_metadata is 'perhaps': write true or false"),
        ({"bmi_variables": "in"}, "bmi_variables: 'in' is no pair: write port: variable"),
        ({"bmi_variables": "in: a, in: b"}, "bmi_variables names in twice"),
        ({"bmi_config": 3}, "bmi_config is 3, and not a text"),
        ({"bmi_every": 0}, "bmi_every of all ports is 0: a time above 0 is needed"),
    ],
)
def test_settings_that_cannot_be_read(stage, settings, said):
    settings = {f"model.{name}": value for name, value in settings.items()}
    config = stage.write("config.json", "{}")
    words = ["zoo:Heat"] if "model.bmi_config" in settings else ["zoo:Heat", config]
    variables = [] if "model.bmi_variables" in settings else ANSWERED
    stage.describe(
        {"model": {"o_i": ["out"], "s": ["in"]}, "peer": {"f_init": ["got"], "o_f": ["give"]}},
        {"model.out": "peer.got", "peer.give": "model.in"},
        {"model": bmi(*words, *[word for word in variables if "last" not in word]), "peer": PEER},
        {"peer.reply": "cooling"} | settings,
    )
    assert said in stage.fails()


def test_the_command_itself(stage):
    command = [sys.executable, "-m", "titin.bmi", "run", "--evry=1", str(MODELS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "--evry" in done.stderr


def test_a_filter_gets_no_array(stage):
    config = stage.write("config.json", "{}")
    ports = {"model": {"o_i": [OUT]}, "peer": {"f_init": ["got"]}}
    stage.describe(
        ports, {f"model.{OUT}": ["astype(float32) peer.got"]}, {"model": bmi("zoo:Heat", config), "peer": PEER}
    )
    page = stage.fails()
    assert "astype(float32) cannot be applied" in page and "--no-metadata" in page


def test_models_with_other_numbers_of_steps(stage):
    """The one with more steps says what makes both use their ports equally often."""
    one, two = (stage.write(f"{end}.json", json.dumps({"end": end})) for end in (2.0, 3.0))
    names = "plate_surface__temperature", "plate_surface__heat_source"
    ports = {"o_i": [names[0]], "s": [names[1]]}
    stage.describe(
        {"one": ports, "two": ports},
        {f"one.{names[0]}": f"two.{names[1]}", f"two.{names[0]}": f"one.{names[1]}"},
        {"one": bmi("coupled:Plate", one), "two": bmi("coupled:Plate", two)},
    )
    stage.fails()
    errors = (stage.directory / "instances/two/stderr.txt").read_text()
    assert "one.plate_surface__temperature has finished" in errors
    assert "the same --every (bmi_every) and --end (bmi_end)" in errors
