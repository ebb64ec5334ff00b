"""Programs that a description names as models with the Basic Model Interface, and ``titin bmi``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..conftest import TITIN
from .conftest import LIMIT, MODELS, PEER

CONFIG = json.dumps({"end": 2.0})
VARIABLES = {"out": "mesh_node__height", "last": "mesh_node__height", "in": "mesh_face__rate"}
PATH = {"env": {"PYTHONPATH": str(MODELS)}, "virtual_env": sys.prefix}


@pytest.mark.parametrize("named_by", ["module", "file"])
def test_a_program_says_which_model_it_is(stage, named_by):
    """The same run as by the arguments of the command. Files are found beside the description."""
    stage.write("mesh.json", CONFIG)
    stage.answered(["zoo:Mesh", stage.folder / "mesh.json"], "mesh_node__height", "mesh_face__rate", "rain")
    stage.ends_well()
    expected = [repr(message) for message in stage.kept("peer")], repr(stage.kept("keep"))
    model = "zoo:Mesh"
    if named_by == "file":
        model = f"{Path('..').joinpath(*['..'] * len(stage.folder.parts), *MODELS.parts[1:])}/zoo.py:Mesh"
        assert (stage.folder / model.partition(":")[0]).is_file()
    stage.describe(
        {
            "model": {"o_i": ["out"], "s": ["in"], "o_f": ["last"]},
            "peer": {"f_init": ["got"], "o_f": ["give"]},
            "keep": {"f_init": ["got"], "o_f": ["give"]},
        },
        {"model.out": "peer.got", "peer.give": "model.in", "model.last": "keep.got"},
        {
            "model": {"titin": {"bmi": model, "config": "mesh.json", "variables": VARIABLES}} | PATH,
            "peer": PEER,
            "keep": PEER,
        },
        {"peer.reply": "rain"},
    )
    stage.ends_well()
    assert ([repr(message) for message in stage.kept("peer")], repr(stage.kept("keep"))) == expected


def test_the_command_prints_a_component(stage):
    config = stage.write("mesh.json", CONFIG)
    env = os.environ | {"PYTHONPATH": str(MODELS)}
    words = ["zoo:Mesh", str(config), "--json"]
    described = subprocess.run(
        [sys.executable, "-m", "titin.bmi", "describe", *words], env=env, capture_output=True, timeout=LIMIT, check=True
    )
    printed = subprocess.run([TITIN, "bmi", *words], env=env, capture_output=True, timeout=LIMIT, check=True)
    assert printed.stdout == described.stdout
    assert json.loads(printed.stdout)
    helped = subprocess.run([TITIN, "bmi", "--help"], env=env, capture_output=True, text=True, timeout=LIMIT)
    assert helped.returncode == 0 and "--setting <NAME=VALUE>" in helped.stdout
    wrong = subprocess.run([TITIN, "bmi", "zoo:Mash", config], env=env, capture_output=True, text=True, timeout=LIMIT)
    assert wrong.returncode == 1 and "Mash" in wrong.stderr
