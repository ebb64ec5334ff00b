"""Submodels in a frame, and the end of their steps."""

from __future__ import annotations

import numpy as np
import pytest
import titin
from titin.model import Model


class Frame(titin.Submodel):
    """Notes the calls, and their times."""

    o_i = "out"

    def __init__(self):
        self.called = []

    def init(self):
        self.called.append("init")

    def observe(self):
        self.called.append(("observe", self.time))
        self.instance.send("out", self.time, timestamp=self.time)

    def solve(self):
        self.called.append(("solve", self.time))
        self.time += 1

    def finish(self):
        self.called.append(("finish", self.time))


def receives(instance):
    while instance.reuse():
        with pytest.raises(titin.PortClosed):
            while True:
                instance.receive("in")


def model(**settings):
    made = Model("frame")
    made.component("sender", "sender", o_i="out")
    made.component("receiver", "receiver", s="in")
    made.conduit("sender.out", "receiver.in")
    made.settings = settings
    return made


STEPS = [[("observe", float(time)), ("solve", float(time))] for time in range(3)]


@pytest.mark.parametrize(
    ("settings", "scales", "unit"),
    [
        ({"t_max": 3, "dt": 1}, {}, "s"),
        ({"t_max": "3000 ms", "dt": "1 s"}, {}, "s"),
        ({}, {"dt": 1, "total": 3}, "s"),
        ({"t_max": 3.4}, {"dt": 1, "total": 8}, "s"),
        ({"t_max": 3}, {}, "s"),
        ({"t_max": 3, "dt": 1}, {}, "h"),
        ({"t_max": "180 min", "dt": "3600 s"}, {}, "h"),
        ({}, {"dt": "1 h", "total": "3 h"}, "h"),
        ({"t_max": 3.4}, {"dt": 3600, "total": "8 h"}, "h"),
    ],
)
def test_methods_are_called_in_the_order_of_the_loop(stage, settings, scales, unit):
    frame = Frame()
    made = model(**settings)
    made.titin = {"time_unit": unit} | ({"scales": {"sender": scales}} if scales else {})
    stage.play(lambda: frame.run(), receives, made)
    assert frame.called == ["init", *(call for step in STEPS for call in step), ("finish", 3.0)]


def test_steps_may_end_by_a_condition_of_ones_own(stage):
    class Until(Frame):
        def stops(self):
            return len(self.called) > 4

    frame = Until()
    stage.play(lambda: frame.run(), receives, model())
    assert frame.called[-1] == ("finish", 2.0)


def test_a_time_may_stand_still_where_a_condition_ends_the_steps(stage):
    class Steady(Frame):
        def solve(self):
            self.called.append("solve")

        def stops(self):
            return self.called.count("solve") == 3

    frame = Steady()
    stage.play(lambda: frame.run(), receives, model())
    assert frame.called[-1] == ("finish", 0.0)


def test_the_ports_of_each_operator_are_those_of_the_class(stage):
    class Ports(Frame):
        f_init, o_i, s, o_f = "initial", ["out", "spare"], "in", "final"

        def finish(self):
            self.found = {name: port.operator for name, port in self.instance.ports.items()}

    frame = Ports()
    stage.play(lambda: frame.run(), receives, model(t_max=3, dt=1))
    assert frame.found == {"initial": "f_init", "out": "o_i", "spare": "o_i", "in": "s", "final": "o_f"}


def test_a_time_that_stands_still_is_an_error(stage):
    class Still(Frame):
        def solve(self):
            pass

    raised, _ = stage.fails(lambda: Still().run(), receives, model(t_max=3, dt=1))
    assert isinstance(raised, titin.UsageError)
    assert "solve() of Still has left the time at 0.0" in str(raised)


def test_a_time_that_stands_still_is_an_error_for_an_own_end_by_time_too(stage):
    class Still(Frame):
        def stops(self):
            return len(self.called) > 100 or super().stops()

        def solve(self):
            self.called.append("solve")

    raised, _ = stage.fails(lambda: Still().run(), receives, model(t_max=3, dt=1))
    assert isinstance(raised, titin.UsageError)


def test_options_of_the_instance_are_passed_on(stage):
    frame = Frame()
    with pytest.raises(TypeError, match="no_such_option"):
        frame.run(no_such_option=1)
    stage.play(lambda: frame.run(unchecked="a test of options"), receives, model(t_max=3, dt=1))
    assert frame.called[-1] == ("finish", 3.0)


def test_without_an_end_in_the_description_there_is_none(stage):
    raised, _ = stage.fails(lambda: Frame().run(), receives, model(dt=1))
    assert isinstance(raised, titin.SettingError)
    assert "sender: will_stop(): no end is known" in str(raised)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"t_max": float("nan"), "dt": 1}, "setting 't_max' is NaN, which is not a number"),
        ({"t_max": "-5 s", "dt": 1}, "setting 't_max' is \"-5 s\", which is a time below 0"),
        ({"t_max": 3, "dt": -1}, "setting 'dt' is -1, which is a time below 0"),
    ],
)
def test_settings_by_which_steps_would_not_end_are_errors(stage, settings, why):
    raised, _ = stage.fails(lambda: Frame().run(), receives, model(**settings))
    assert isinstance(raised, titin.SettingError)
    assert f"sender: will_stop(): {why}" in str(raised)


def test_a_step_too_short_for_the_time_is_an_error(stage):
    class Late(Frame):
        def init(self):
            self.time = 1e16

    raised, _ = stage.fails(lambda: Late().run(), receives, model(t_max=float("inf"), dt=1))
    assert isinstance(raised, titin.UsageError)
    assert "a step of 1.0 from 1e16 does not change the time" in str(raised)


def test_a_coroutine_can_ask_too(stage):
    async def sender(instance):
        time = 0.0
        while await instance.reuse():
            while not instance.will_stop(time):
                await instance.send("out", np.zeros(1), timestamp=time)
                time += 0.1
        return round(time, 6)

    assert stage.play(sender, receives, model(t_max=0.5, dt=0.1))["sender"] == 0.5
