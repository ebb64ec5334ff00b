"""Settings that travel with messages, or come on muscle_settings_in, in each language. The driver is in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def pass_on() -> None:
    """The script of passing.c."""
    for wrong in ("Explicit", "", 1):
        with pytest.raises(titin.UsageError, match="overlays"):
            titin.Instance(overlays=wrong)  # type: ignore[arg-type]
    with titin.Instance(overlays="explicit") as instance:
        while instance.reuse():
            instance.receive("one")
            member = instance.receive("two")
            instance.send("passed", timestamp=0.0, settings=member.settings)
            instance.send("plain", [instance.setting("k", float), float(len(instance.overlay))], timestamp=0.0)


async def pass_on_asynchronously() -> None:
    """The same on an event loop."""
    async with titin.aio.Instance(overlays="explicit") as instance:
        while await instance.reuse():
            await instance.receive("one")
            member = await instance.receive("two")
            await instance.send("passed", timestamp=0.0, settings=member.settings)
            await instance.send("plain", [instance.setting("k", float), float(len(instance.overlay))], timestamp=0.0)


@pytest.mark.parametrize("program", ["python", "aio", "c", "cpp", "f90"])
def test_explicit_overlays(build: Build, tmp_path: Path, program: str) -> None:
    """Overlays that contradict each other change nothing, and go on only where the program says so. What comes on
    muscle_settings_in holds for the use, and does not go on by itself either."""
    model = Model("explicit")
    model.component("driver", "driver", o_i="settings a b", s="passed plain")
    model.component("passing", "passing", f_init="one two", o_f="passed plain")
    for port, other in (("settings", "muscle_settings_in"), ("a", "one"), ("b", "two")):
        model.conduit(f"driver.{port}", f"passing.{other}")
    for port in ("passed", "plain"):
        model.conduit(f"passing.{port}", f"driver.{port}")
    model.settings = {"k": 1.0}

    def driver(instance: titin.Instance) -> list[Any]:
        answers = []
        while instance.reuse():
            for step, settings in enumerate([{}, {"k": 7.5}, {}]):
                instance.send("settings", settings, timestamp=float(step), settings={"k": 6.5})
                instance.send("a", timestamp=float(step), settings={"k": 2.5})
                instance.send("b", timestamp=float(step), settings={"k": 3.5 + step, "driver.x": "of a member"})
                passed, plain = instance.receive("passed"), instance.receive("plain")
                answers.append((list(plain.data), passed.settings, plain.settings))
        return answers

    functions: dict[str, Callable[..., Any]] = {"driver": driver}
    match program:
        case "python":
            functions["passing"] = pass_on
        case "aio":
            functions["passing"] = pass_on_asynchronously
        case _:
            model.program("passing", str(build("passing", program)))
    run = titin.run(model, functions, run_dir=tmp_path / "run")
    members = [{"k": 3.5 + step, "driver.x": "of a member"} for step in range(3)]
    assert run.returned["driver"] == [
        ([1.0, 0.0], members[0], {}),
        ([7.5, 1.0], members[1], {}),
        ([1.0, 0.0], members[2], {}),
    ]
