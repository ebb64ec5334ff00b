"""Settings that travel with messages, or come on muscle_settings_in, in each language. The driver is in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import titin
from titin.model import Model

from .conftest import Build

LANGUAGES = pytest.mark.parametrize("language", ["c", "cpp", "f90"])


def play(folder: Path, program: Path, send: Callable[[titin.Instance, int], None]) -> list[list[float]]:
    """The settings of the called program in each of three uses: the setting k, and the size of the overlay."""
    model = Model("overlaid")
    model.component("driver", "driver", o_i="settings out", s="back")
    model.component("called", "called", f_init="in", o_f="out")
    model.conduit("driver.settings", "called.muscle_settings_in")
    model.conduit("driver.out", "called.in")
    model.conduit("called.out", "driver.back")
    model.settings = {"k": 1.0}
    model.program("called", str(program))

    def driver(instance: titin.Instance) -> list[list[float]]:
        answers = []
        while instance.reuse():
            for step in range(3):
                send(instance, step)
                answers.append(instance.receive("back").data.tolist())
        return answers

    run = titin.run(model, {"driver": driver}, run_dir=folder / "run")
    found: list[list[float]] = run.returned["driver"]
    return found


@LANGUAGES
def test_a_map_on_muscle_settings_in(build: Build, tmp_path: Path, language: str) -> None:
    def send(instance: titin.Instance, step: int) -> None:
        instance.send("settings", [{"k": 2.5}, {"called.k": 3, "k": 7.0}, {}][step], timestamp=float(step))
        instance.send("out", timestamp=float(step))

    assert play(tmp_path, build("called", language), send) == [[2.5, 1.0], [3.0, 2.0], [1.0, 0.0]]


@LANGUAGES
def test_two_overlays_that_contradict_each_other(build: Build, tmp_path: Path, language: str) -> None:
    def send(instance: titin.Instance, step: int) -> None:
        instance.send("settings", {"k": 2.5}, timestamp=float(step))
        instance.send("out", timestamp=float(step), settings={"k": 3.5})

    with pytest.raises(titin.Error, match="called"):
        play(tmp_path, build("called", language), send)
    told = (tmp_path / "run/titin_manager.log").read_text()
    said = (tmp_path / "run/instances/called/stderr.txt").read_text()
    for word in ("called: the settings overlays of ", "driver.settings", "driver.out", "'k'", "2.5", "3.5"):
        assert word in told
        assert word in said
