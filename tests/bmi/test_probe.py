"""`titin check --probe` starts the models of a description, and compares what they tell."""

from __future__ import annotations

import json
import subprocess

import pytest

from ..conftest import TITIN
from .conftest import LIMIT, MODELS, Stage

TEMPERATURE, SOURCE = "plate_surface__temperature", "plate_surface__heat_source"

DESCRIPTION = """\
ymmsl_version: v0.2
models:
  m:
    components:
      heat: {{description: a plate, ports: {{o_i: out, s: in}}, implementation: heat}}
      other: {{description: the other, ports: {{o_i: give, s: take}}, implementation: other}}
    conduits:
      heat.out: other.take
      other.give: heat.in
settings: {{heat.size: 7, wide: 12 h, titin: 3}}
programs:
  heat: {{titin: {{bmi: "{models}/zoo.py:Heat", config: heat.json, variables: {{out: {out}, in: {into}}}}}}}
  other: {{titin: {{bmi: "{other}", config: other.json, variables: {{give: {give}, take: {take}}}}}}}
"""


def check(stage: Stage, *, config: dict[str, object] | None = None, **words: str) -> subprocess.CompletedProcess[str]:
    """`titin check --probe` of two plates, but for these words."""
    described = {"out": TEMPERATURE, "into": SOURCE, "give": SOURCE, "take": SOURCE, "other": "plates.py:Plate"}
    stage.write("model.ymmsl", DESCRIPTION.format(models=MODELS, **described | words))
    stage.write("heat.json", '{"shape": [5, {size}], "end": {wide:min}}')
    stage.write("other.json", json.dumps({"shape": [5, 7]} | (config or {})))
    command = [TITIN, "check", "--probe", "model.ymmsl"]
    return subprocess.run(command, cwd=stage.folder, capture_output=True, text=True, timeout=LIMIT)


#: A plate of another module, whose variables have other units, shapes and directions.
PLATES = """
import numpy as np
from base import Base


class Plate(Base):
    inputs = ("received", "cold", "wide")
    outputs = ("given", "rate", "wide")

    def begin(self):
        if self.config.get("fails"):
            raise ArithmeticError("the plate is broken")
        shape = tuple(self.config["shape"])
        open("trace.txt", "w").write("initialized")
        for name, unit in (("received", "degC"), ("cold", "m"), ("given", "mK h-1"), ("rate", "K")):
            self.add(name, np.zeros(shape), unit)
        self.add("wide", np.zeros((3, 2)), "K", grid=1)
"""


@pytest.fixture(autouse=True)
def plates(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.write("plates.py", PLATES)
    monkeypatch.setenv("PYTHONPATH", str(MODELS))


GOOD = {"other": "plates.py:Plate", "give": "given", "take": "received"}


def test_models_that_fit_are_told_as_such(stage):
    done = check(stage, **GOOD)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("nothing wrong\n")
    left = {path.name for path in stage.folder.iterdir()}
    assert left == {"model.ymmsl", "heat.json", "other.json", "plates.py"}, "models work in a folder of their own"


def test_a_port_without_a_conduit_and_staged_files_are_as_in_a_run(stage):
    """A model that settings name by a file that is copied into the work directory."""
    check(stage, **GOOD)
    text = (stage.folder / "model.ymmsl").read_text()
    text = text[: text.index("  other: {titin:")].replace("implementation: other", "implementation: titin.bmi")
    text = text.replace("s: take}", "s: take, o_f: last}")
    variables = "give: given, take: received, last: given"
    text += f"settings: {{bmi: plates.py:Plate, bmi_config: other.json, other.bmi_variables: '{variables}'}}\n"
    text = text.replace("settings: {heat.size: 7, wide: 12 h, titin: 3}\n", "", 1).replace(
        "settings: {", "settings: {heat.size: 7, wide: 12 h, "
    )
    staged = text + "titin: {stage: {other: {in: [plates.py, other.json]}}}\n"
    for described, errors in [(staged, []), (text, ["there is no file", "plates.py"])]:
        stage.write("model.ymmsl", described)
        command = [TITIN, "check", "--probe", "model.ymmsl"]
        done = subprocess.run(command, cwd=stage.folder, capture_output=True, text=True, timeout=LIMIT)
        assert done.returncode == (2 if errors else 0), done.stdout + done.stderr
        assert all(word in done.stdout for word in errors)


@pytest.mark.parametrize(
    ("words", "place", "said"),
    [
        (
            {"give": "gives"},
            "model.ymmsl:6:",
            ['the model of "other" does not fit', "names no output variable", "given"],
        ),
        ({"give": "received"}, "model.ymmsl:6:", ["sends, but received is an input variable"]),
        ({"into": TEMPERATURE}, "model.ymmsl:5:", ['the model of "heat" does not fit', SOURCE]),
        ({"other": "plates.py:Plat"}, "model.ymmsl:6:", ["Plat", "Plate"]),
        ({"take": "cold"}, "model.ymmsl:8:", ["heat.out does not fit other.take", "'K' is in K, and 'm' is in m"]),
        ({"give": "rate"}, "model.ymmsl:9:", ["other.give does not fit heat.in", "'K' is in K", "K s-1"]),
        ({"take": "wide"}, "model.ymmsl:8:", ["heat.out does not fit other.take", "[5, 7]", "[3, 2]", "maps one grid"]),
        ({"config": {"fails": True}}, "model.ymmsl:6:", ["ArithmeticError: the plate is broken", "initialize"]),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(stage, words, place, said):
    done = check(stage, **GOOD | words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert place in done.stdout
    assert "1 error" in done.stdout
    assert "Traceback" not in done.stdout
    for text in said:
        assert text in done.stdout


def test_without_probe_no_model_is_started(stage):
    check(stage, **GOOD | {"give": "gives"})
    done = subprocess.run(
        [TITIN, "check", "model.ymmsl"], cwd=stage.folder, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout
