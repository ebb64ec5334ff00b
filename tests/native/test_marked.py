"""Real numbers of single precision and settings as data, in each language. The driver is in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import titin
from titin.model import Model

from .conftest import Build

SINGLE = np.float32(0.1)
DATA = {"single": SINGLE, "double": 0.1, "settings": titin.Settings({"k": 2.5, "a.b": [1, 2]}), "map": {"k": 2.5}}
OWN = {"single": SINGLE, "settings": titin.Settings(k=7.5)}


def typed(data: Any) -> Any:
    """The data with the type of each value beside it."""
    if isinstance(data, dict):
        return type(data), [(name, typed(value)) for name, value in data.items()]
    return type(data), data


def marked() -> None:
    """The script of marked.c."""
    with titin.Instance() as instance:
        while instance.reuse():
            data = instance.receive("in").data
            assert typed(data) == typed(DATA)
            instance.send("passed", data, timestamp=0.0)
            instance.send("own", OWN, timestamp=0.0)


@pytest.mark.parametrize("program", ["python", "c", "cpp", "f90"])
def test_marks_stay(build: Build, tmp_path: Path, program: str) -> None:
    model = Model("marks")
    model.component("driver", "driver", o_i="out", s="passed own")
    model.component("marked", "marked", f_init="in", o_f="passed own")
    model.conduit("driver.out", "marked.in")
    for port in ("passed", "own"):
        model.conduit(f"marked.{port}", f"driver.{port}")

    def driver(instance: titin.Instance) -> list[Any]:
        answers = []
        while instance.reuse():
            for _ in range(2):
                instance.send("out", DATA, timestamp=0.0)
                answers.append((instance.receive("passed").data, instance.receive("own").data))
        return answers

    functions: dict[str, Callable[..., Any]] = {"driver": driver}
    if program == "python":
        functions["marked"] = marked
    else:
        model.program("marked", str(build("marked", program)))
    answers = titin.run(model, functions, run_dir=tmp_path / "run").returned["driver"]
    assert [(typed(passed), typed(own)) for passed, own in answers] == [(typed(DATA), typed(OWN))] * 2
