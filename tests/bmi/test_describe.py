"""What `python -m titin.bmi describe` prints can be pasted; and the models of these tests keep to the interface."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from ..conftest import TITIN
from .conftest import LIMIT, MODELS

# bmi-tester does not know grids of points, which Wells has.
TESTED = ("Heat", "Rod", "Tank", "Mesh", "Layers")


def describe(*words, status=0):
    command = [sys.executable, "-m", "titin.bmi", "describe", *map(str, words)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=MODELS,
        # With buffers, as a user has them.
        env=os.environ | {"PYTHONPATH": str(MODELS), "PYTHONUNBUFFERED": ""},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout if status == 0 else done.stderr


def test_a_component_to_paste(stage):
    config = stage.write("config.json", '{"dt": {dt}}')
    found = describe("zoo:Tank", config, "--setting", "dt=0.5")
    assert "\033" not in found
    assert "# zoo:Tank: times from 0 to 5 s, by steps of 0.5" in found
    assert "- tank__inflow  # float64, single value, L s-1, grid 0" in found
    parsed = yaml.safe_load(found)
    assert parsed["components"]["tank"]["ports"] == {
        "s": ["tank__inflow", "tank__level"],
        "o_i": ["tank__level_out", "tank__outflow"],
    }
    program = parsed["programs"]["tank"]["titin"]
    assert program == {"bmi": "zoo:Tank", "config": str(config), "variables": {"tank__level_out": "tank__level"}}
    whole = {
        "ymmsl_version": "v0.2",
        "models": {"m": {"components": parsed["components"]}},
        "programs": parsed["programs"],
    }
    path = stage.write("model.ymmsl", yaml.safe_dump(whole))
    done = subprocess.run([TITIN, "check", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("value", ["500 ms", "0.5 s", "0.5"])
def test_settings_are_converted_as_in_a_run(stage, value):
    """A place with a unit gets the number in this unit; a number alone is in it."""
    config = stage.write("config.json", '{"dt": {dt:s}}')
    assert "by steps of 0.5" in describe("zoo:Tank", config, "--setting", f"dt={value}")
    said = describe("zoo:Tank", config, "--setting", "dt=soon", status=1)
    assert "the place {dt:s} cannot be filled in: setting dt is 'soon', and no quantity in s" in said


def test_grids_stand_below(stage):
    config = stage.write("config.json", '{"shape": [4, 6]}')
    found = describe("zoo:Heat", config)
    assert "# grid 0: uniform_rectilinear, shape [4, 6], spacing [0.5, 0.5], origin [0.0, 0.0], size 24" in found
    assert "- plate_surface__temperature  # float64, 4 by 6 (y, x), K, grid 0" in found


def test_all_that_is_known_as_json(stage):
    config = stage.write("config.json", "{}")
    found = json.loads(describe("zoo:Mesh", config, "--json"))
    assert found["time"] == {"units": "hours", "start": 0.0, "end": 5.0, "step": 1.0, "seconds": 3600.0}
    assert found["outputs"] == [
        {
            "name": "mesh_node__height",
            "type": "float32",
            "units": "m",
            "shape": [6],
            "names": ["node"],
            "location": "node",
            "grid": 0,
        }
    ]
    assert found["grids"][0]["face_nodes"] == [0, 1, 4, 3, 1, 2, 5, 1, 5, 4]


def test_names_that_no_port_may_have(stage, native):
    config = stage.write("aquifer.txt", "0.5 3 2\n")
    found = describe(f"{native}/libaquifer.so", config, "--time-units=d")
    assert "- GWF_HEAD  # float64, 3 by 4 (y, x), no unit, grid 1" in found
    program = yaml.safe_load(found)["programs"]["aquifer"]["titin"]
    assert program["variables"]["GWF_RECHARGE_out"] == "GWF/RECHARGE"


def test_what_cannot_be_described(stage):
    config = stage.write("config.json", '{"dt": {dt}}')
    assert "the place {dt} cannot be filled in: there is no setting dt: add --setting dt=..." in describe(
        "zoo:Tank", config, status=1
    )
    assert "no module nowhere" in describe("nowhere:Tank", status=1)


@pytest.mark.parametrize("name", TESTED)
def test_bmi_tester_finds_nothing(stage, name):
    (stage.folder / "config.json").write_text('{"dt": 0.5, "end": 3.0}')
    command = ["bmi-test", f"zoo:{name}", "--root-dir", ".", "--config-file", "config.json"]
    env = os.environ | {"PYTHONPATH": str(MODELS), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=stage.folder, timeout=LIMIT)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert " passed" in done.stdout and " failed" not in done.stdout and " error" not in done.stdout


def test_what_a_model_prints_is_not_of_the_description(stage):
    """Neither by Python nor by the buffers of C."""
    path = stage.write(
        "loud.py",
        "import ctypes, zoo\n"
        "class Loud(zoo.Heat):\n"
        "    def begin(self):\n"
        "        super().begin()\n"
        "        print('Python begins')\n"
        "        ctypes.CDLL(None).puts(b'C begins')\n"
        "    def get_end_time(self):\n"
        "        return 10**400\n",
    )
    found = json.loads(describe(f"{path}:Loud", stage.write("config.json", "{}"), "--json"))
    assert found["time"]["end"] is None
