"""Settings that travel with messages, or come on muscle_settings_in."""

from __future__ import annotations

import random
from types import MappingProxyType

import pytest
import titin
from titin.model import Model

from ..conftest import muscle3_module


def called(**conduits: str) -> Model:
    """A driver that calls a micro model, and gives it settings by these ways."""
    model = Model("called")
    model.component("driver", "driver", o_i="a b", s="back")
    model.component(
        "micro", "micro", f_init=[port for port in conduits.values() if port != "muscle_settings_in"], o_f="out"
    )
    for port, other in conduits.items():
        model.conduit(f"driver.{port}", f"micro.{other}")
    model.conduit("micro.out", "driver.back")
    model.settings = {"k": 1.0, "micro.label": "from the description"}
    return model


def micro(instance):
    """A micro model that answers with the settings that it has."""
    inputs = [port for port in instance.ports.values() if port.operator == "f_init"]
    while instance.reuse():
        for port in inputs:
            instance.receive(port)
        known = [instance.setting("k", float), instance.setting("label", str), instance.overlay]
        instance.send("out", known, timestamp=0.0)


def play(stage, model, driver):
    """The answers of the micro model."""
    answers = []

    def calls(instance):
        while instance.reuse():
            for step in range(3):
                driver(instance, step)
                answer = instance.receive("back")
                answers.append((answer.data, answer.settings))

    titin.run(model, {"driver": calls, "micro": micro}, run_dir=stage.folder / "run")
    return answers


def test_a_map_on_muscle_settings_in(stage):
    """Each use has an overlay of its own. Messages that the use sends carry the overlay on."""

    def driver(instance, step):
        settings = [{"k": 2.5}, {"micro.k": 3, "k": 7.0, "micro.label": "from the driver"}, {}][step]
        instance.send("a", settings, timestamp=float(step))

    assert play(stage, called(a="muscle_settings_in"), driver) == [
        ([2.5, "from the description", {"k": 2.5}], {"k": 2.5}),
        (
            [3.0, "from the driver", {"micro.k": 3, "k": 7.0, "micro.label": "from the driver"}],
            {"micro.k": 3, "k": 7.0, "micro.label": "from the driver"},
        ),
        ([1.0, "from the description", {}], {}),
    ]


def test_muscle_settings_in_is_no_port_of_the_program(stage):
    refused = []

    def knows(instance):
        assert list(instance.ports) == ["in", "out"]
        for call in (instance.port, instance.receive):
            with pytest.raises(titin.UsageError, match="taken by reuse"):
                call("muscle_settings_in")
        refused.append(True)
        micro(instance)

    def calls(instance):
        while instance.reuse():
            instance.send("a", {"k": 2}, timestamp=0.0)
            instance.send("b", timestamp=0.0)
            assert instance.receive("back").data[0] == 2.0

    model = called(a="muscle_settings_in", b="in")
    titin.run(model, {"driver": calls, "micro": knows}, run_dir=stage.folder / "run")
    assert refused == [True]


def test_muscle_settings_in_beside_a_port(stage):
    def driver(instance, step):
        instance.send("a", {"k": step + 0.5}, timestamp=float(step))
        instance.send("b", timestamp=float(step), settings={"micro.label": f"step {step}", "k": step + 0.5})

    answers = play(stage, called(a="muscle_settings_in", b="in"), driver)
    assert [data[:2] for data, _ in answers] == [[0.5, "step 0"], [1.5, "step 1"], [2.5, "step 2"]]


@pytest.mark.parametrize("wrong", [3.5, [1.0], {"k": {"deep": 1}}], ids=str)
def test_what_is_no_map_of_settings(stage, wrong):
    def driver(instance, step):
        instance.send("a", wrong, timestamp=float(step))

    with pytest.raises(titin.Error, match="muscle_settings_in"):
        play(stage, called(a="muscle_settings_in"), driver)


@pytest.mark.parametrize(("first", "second"), [("muscle_settings_in", "in"), ("in", "other")])
def test_two_overlays_that_contradict_each_other(stage, first, second):
    def send(instance, port, number):
        data, settings = ({"k": number}, {}) if port == "muscle_settings_in" else (None, {"k": number})
        instance.send({first: "a", second: "b"}[port], data, timestamp=0.0, settings=settings)

    def driver(instance, step):
        send(instance, first, 2.5)
        send(instance, second, 3.5)

    with pytest.raises(titin.SettingError) as raised:
        play(stage, called(a=first, b=second), driver)
    for word in ("micro: ", "driver.a", "driver.b", "'k'", "2.5", "3.5"):
        assert word in str(raised.value)


def test_any_mapping_is_an_overlay(stage):
    def driver(instance, step):
        instance.send("a", timestamp=float(step), settings=MappingProxyType({"k": 4.5}))

    assert play(stage, called(a="in"), driver)[0] == ([4.5, "from the description", {"k": 4.5}], {"k": 4.5})
    assert titin.Message(settings=MappingProxyType({"k": 1})).settings == {"k": 1}


def test_what_is_no_mapping_is_refused(stage):
    def driver(instance, step):
        for wrong in ([("k", 1)], "k", 3):
            with pytest.raises(TypeError, match="mapping"):
                instance.send("a", timestamp=float(step), settings=wrong)
        for name, value, why in (("k", {}, "the value of 'k'"), ("", 1, "'' cannot"), ("a b", 1, "'a b' cannot")):
            with pytest.raises(titin.UsageError, match=why):
                instance.send("a", timestamp=float(step), settings={name: value})
        instance.send("a", timestamp=float(step))

    play(stage, called(a="in"), driver)
    with pytest.raises(TypeError, match="mapping"):
        titin.Message(settings=[1])


def test_settings_are_found_as_by_muscle3(stage):
    """Settings are looked up by name, from the most specific name to the least, each first in the overlay."""
    manager = muscle3_module("libmuscle/settings_manager.py")
    from ymmsl.v0_2 import Reference, Settings

    chance = random.Random(18)
    micros = ["outer.micro[0]", "outer.micro[1]"]
    owners = ["", "outer.", "outer.micro.", "outer.micro[0].", "outer.micro[1].", "driver."]
    names = [f"k{number}" for number in range(12)]

    def some(first: int) -> dict[str, int]:
        paths = [f"{owner}{name}" for owner in owners for name in names if chance.random() < 0.4]
        return {path: first + number for number, path in enumerate(paths)}

    inner = Model("inner")
    inner.port("f_init", "in")
    inner.port("o_f", "out")
    inner.component("micro", "micro", f_init="in", o_f="out", multiplicity=2)
    inner.conduit("in", "micro.in")
    inner.conduit("micro.out", "out")
    model = Model("model")
    model.component("driver", "driver", o_i="a", s="back")
    model.component("outer", inner)
    model.conduit("driver.a", "outer.in")
    model.conduit("outer.out", "driver.back")
    model.settings = some(0)
    overlays = [some(1000 * use) for use in range(1, 40)]
    found: dict[str, list[list[int | None]]] = {micro: [] for micro in micros}

    def driver(instance):
        while instance.reuse():
            for step, overlay in enumerate(overlays):
                for slot in range(2):
                    instance.send("a", timestamp=float(step), settings=overlay, slot=slot)
                for slot in range(2):
                    instance.receive("back", slot=slot)

    def micro(instance):
        while instance.reuse():
            instance.receive("in")
            found[instance.name].append([instance.setting(name, int, None) for name in names])
            instance.send("out", timestamp=0.0)

    titin.run(model, {"driver": driver, "outer.micro": micro}, run_dir=stage.folder / "run")

    oracle = manager.SettingsManager()
    oracle.base = Settings(model.settings)

    def wanted(instance: str, name: str) -> int | None:
        try:
            return oracle.get_setting(Reference(instance), Reference(name))
        except KeyError:
            return None

    for use, overlay in enumerate(overlays):
        oracle.overlay = Settings(overlay)
        for instance in micros:
            assert found[instance][use] == [wanted(instance, name) for name in names], (use, instance)


def test_a_name_that_leads_nowhere_is_warned_of_once(stage):
    """A setting of another component of the run is right in an overlay, because overlays travel on."""

    def driver(instance, step):
        instance.send("a", {"micr.k": step, "micro[0].k": 1, "driver.k": 2}, timestamp=float(step))

    play(stage, called(a="muscle_settings_in"), driver)
    log = (stage.folder / "run/titin_manager.log").read_text()
    for name, count in [("micr.k", 1), ("micro[0].k", 1), ("driver.k", 0)]:
        assert log.count(f"the setting '{name}' of the overlay of driver") == count, log
