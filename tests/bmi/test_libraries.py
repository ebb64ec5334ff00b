"""Libraries that break BMI's C entry, and one that is used again by the convention of xmipy."""

from __future__ import annotations

import numpy as np
import pytest
from titin.bmi.grids import Grid
from titin.bmi.loading import make
from titin.bmi.model import Model, ModelError
from titin.bmi.options import Options
from titin.bmi.time import Clock

from .conftest import bmi, python


def river(stage, native, way):
    model = Model("river", make(f"{native}/libbroken.so:register_bmi_{way}"))
    model.call("initialize", str(stage.write("config.txt", "6 0.5 4\n")))
    return model


def test_a_library_that_writes_more_than_it_told(stage, native):
    with pytest.raises(ModelError, match="get_value has written beyond the 6 values that it has") as caught:
        river(stage, native, "values").values("river__depth", np.dtype("f8"), (6,))
    assert caught.value.__notes__ == ["titin.bmi: in get_value('river__depth') of river, at time 0.0 seconds"]
    with pytest.raises(ModelError, match="get_grid_shape has written beyond the 1 values"):
        Grid(river(stage, native, "shape"), 0)


def test_a_library_without_what_is_needed(stage, native):
    with pytest.raises(ModelError, match="get_input_item_count has told 2000000000, and no count"):
        river(stage, native, "names").names("get_input_var_names")
    with pytest.raises(ModelError, match=r"name the end by --end"):
        Clock(river(stage, native, "end"), Options(), [])
    assert Clock(river(stage, native, "end"), Options(end=2), []).end == 2.0
    with pytest.raises(ModelError, match="register_bmi_nothing has left the structure empty"):
        river(stage, native, "nothing")


@pytest.mark.parametrize(
    ("way", "said"),
    [("crash", ["was ended by SIGSEGV", "in update"]), ("abort", ["was ended by SIGABRT", "the river has run dry"])],
)
def test_a_library_that_ends_the_process(stage, native, way, said):
    """The page has the call that crashed, or the last words of the library."""
    config = stage.write("config.txt", "6 0.5 4\n")
    stage.answered([f"{native}/libbroken.so:register_bmi_{way}", config], "river__depth", "river__inflow", "half")
    page = stage.fails()
    for text in said:
        assert text in page


def test_a_library_runs_in_the_folder_of_its_configuration_in_each_use(stage, native):
    folder = stage.folder / "ground"
    folder.mkdir()
    (folder / "aquifer.txt").write_text("0.5 3 2\n")
    ports = ["--variable=start=GWF/RECHARGE", "--variable=final=GWF/HEAD"]
    stage.describe(
        {"driver": {"o_i": ["ask"], "s": ["answer"]}, "ground": {"f_init": ["start"], "o_f": ["final"]}},
        {"driver.ask": "ground.start", "ground.final": "driver.answer"},
        {
            "driver": python("-c", _ASKS),
            "ground": bmi(f"{native}/libaquifer.so", "ground/aquifer.txt", "--time-units=d", *ports),
        },
        titin={"stage": {"ground": {"in": ["ground/"]}}},
    )
    stage.ends_well()


# A program that uses the model three times, as it is.
_ASKS = """
import titin
with titin.Instance(o_i=["ask"], s=["answer"]) as instance:
    instance.reuse()
    for step in range(3):
        instance.send("ask", None, timestamp=float(step))
        instance.receive("answer")
"""
