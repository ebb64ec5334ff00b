"""Calls out of order that only make warnings, in each language. The driver is in Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import titin
from titin.model import Model

from .conftest import Build


def warned() -> None:
    """The script of warned.c."""
    for wrong in ("Warn", "off", "", 1):
        with pytest.raises(titin.UsageError, match="checks cannot be"):
            titin.Instance(checks=wrong)  # type: ignore[arg-type]
    with titin.Instance(checks="warn") as instance:
        use = 0
        while instance.reuse():
            instance.send("early", 0.0, timestamp=0.0)
            number = instance.receive("two").data if use == 1 else 0.0
            instance.receive("one")
            instance.send("out", number, timestamp=0.0)
            use += 1


async def warned_asynchronously() -> None:
    """The same on an event loop."""
    async with titin.aio.Instance(checks="warn") as instance:
        use = 0
        while await instance.reuse():
            await instance.send("early", 0.0, timestamp=0.0)
            number = (await instance.receive("two")).data if use == 1 else 0.0
            await instance.receive("one")
            await instance.send("out", number, timestamp=0.0)
            use += 1


def model_of(settings: dict[str, Any]) -> Model:
    model = Model("lenient")
    model.component("driver", "driver", o_i="a b", s="early out")
    model.component("warned", "warned", f_init="one two", o_f="early out")
    for port, other in (("a", "one"), ("b", "two")):
        model.conduit(f"driver.{port}", f"warned.{other}")
    for port in ("early", "out"):
        model.conduit(f"warned.{port}", f"driver.{port}")
    model.settings = settings
    return model


def driver(instance: titin.Instance) -> list[float]:
    answers = []
    while instance.reuse():
        for step in range(3):
            instance.send("a", step, timestamp=0.0)
            instance.send("b", 10.0 + step, timestamp=0.0)
            instance.receive("early")
            answers.append(instance.receive("out").data)
    return answers


@pytest.mark.parametrize("program", ["python", "aio", "c", "cpp", "f90"])
def test_calls_out_of_order_make_one_warning_for_each_kind_and_port(build: Build, tmp_path: Path, program: str) -> None:
    """A message that a use has not received is dropped: the next use gets its own."""
    model = model_of({})
    functions: dict[str, Callable[..., Any]] = {"driver": driver}
    match program:
        case "python":
            functions["warned"] = warned
        case "aio":
            functions["warned"] = warned_asynchronously
        case _:
            model.program("warned", str(build("warned", program)))
    run = titin.run(model, functions, run_dir=tmp_path / "run")
    assert run.returned["driver"] == [0.0, 11.0, 0.0]
    log = (tmp_path / "run/titin_manager.log").read_text()
    for text, times in [
        ("send on O_F port 'early' before F_INIT port 'one' was received", 1),
        ("F_INIT port 'two' after O_F; F_INIT comes first", 1),
        ("F_INIT port 'one' after O_F; F_INIT comes first", 1),
        ("a message on F_INIT port 'two' was not received in its use, and is dropped", 1),
        ("2 messages from driver.b on F_INIT port 'two' were never taken, and dropped", 1),
        ("send on O_F port 'out' before F_INIT port 'two' was received", 1),
        ("the call goes on, since checks only warn", 4),
    ]:
        assert log.count(text) == times, (text, log)


@pytest.mark.parametrize(
    ("checks", "setting", "outcome"),
    [
        ("error", "warn", "warned"),
        ("warn", "strict", "refused"),
        ("warn", "off", "silent"),
        ("unchecked", None, "silent"),
        ("unchecked", "strict", "refused"),
        ("unchecked", "warn", "warned"),
        ("error", None, "refused"),
    ],
)
def test_the_setting_comes_before_the_program(tmp_path: Path, checks: str, setting: str | None, outcome: str) -> None:
    model = model_of({} if setting is None else {"warned.muscle_checks": setting})

    def program() -> None:
        given: dict[str, Any] = {"unchecked": "it is a test"} if checks == "unchecked" else {"checks": checks}
        with titin.Instance(**given) as instance:
            while instance.reuse():
                instance.send("early", 0.0, timestamp=0.0)
                instance.receive("one")
                instance.send("out", 0.0, timestamp=0.0)

    functions: dict[str, Callable[..., Any]] = {"driver": driver, "warned": program}
    if outcome == "refused":
        with pytest.raises(titin.Error, match="port 'early' before F_INIT"):
            titin.run(model, functions, run_dir=tmp_path / "run")
        return
    titin.run(model, functions, run_dir=tmp_path / "run")
    log = (tmp_path / "run/titin_manager.log").read_text()
    assert ("the call goes on" in log) == (outcome == "warned")
    assert "3 messages from driver.b on F_INIT port 'two' were never taken, and dropped" in log
