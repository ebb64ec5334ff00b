"""Answers of models that cannot be used, and times that are odd: each call looked at in this process, without a run."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import zoo
from titin.bmi import config
from titin.bmi.grids import Grid
from titin.bmi.loading import make
from titin.bmi.model import Model, ModelError
from titin.bmi.options import Options, read_options
from titin.bmi.ports import Variable
from titin.bmi.time import Clock
from titin.bmi.units import UnitError, conversion, parse

OUT, IN = "plate_surface__temperature", "plate_surface__heat_source"


def heat(stage, **answers):
    """A plate some of whose methods answer otherwise: with a value, or by a function of the plate and arguments."""
    plate = zoo.Heat()
    plate.initialize(str(stage.write("config.json", json.dumps({"dt": 0.25, "end": 2.0}))))
    for method, answer in answers.items():
        given = (lambda function: lambda *words: function(plate, *words))(answer) if callable(answer) else None
        setattr(plate, method, given or (lambda value: lambda *words: value)(answer))
    return Model("heat", plate)


def absent(plate, *words):
    raise NotImplementedError("not here")


HUGE = 10**400


@pytest.mark.parametrize("answer", [None, "1", b"1", [1, 2], True, 1j, np.complex128(1), float("nan"), np.zeros(2)])
def test_what_is_no_number(stage, answer):
    with pytest.raises(ModelError, match=r"get_current_time\(\) of heat returned .*, and not a number"):
        heat(stage, get_current_time=answer).number("get_current_time")


@pytest.mark.parametrize("answer", [float("inf"), -float("inf"), HUGE])
def test_numbers_without_end(stage, answer):
    with pytest.raises(ModelError, match="and not a finite number"):
        heat(stage, get_start_time=answer).number("get_start_time")
    with pytest.raises(ModelError, match="and not a finite number"):
        heat(stage, get_var_nbytes=answer).count("get_var_nbytes", OUT)


@pytest.mark.parametrize("answer", [1, np.float32(1), np.int64(1), np.array(1.0), Fraction(1)])
def test_what_is_a_number(stage, answer):
    assert heat(stage, get_current_time=answer).number("get_current_time") == 1.0


@pytest.mark.parametrize("answer", [None, 3, "abc", b"abc", [1], np.array(1.0)])
def test_what_is_no_list_of_names(stage, answer):
    with pytest.raises(ModelError, match="and not names: return a tuple of texts"):
        heat(stage, get_input_var_names=answer).names("get_input_var_names")


def test_names_may_come_one_by_one(stage):
    model = heat(stage, get_input_var_names=lambda plate: (name for name in "ab"))
    assert model.names("get_input_var_names") == ("a", "b")


@pytest.mark.parametrize("answer", [None, 8, ["f8"], "quaternion", "f8,f8", "int3"])
def test_what_is_no_type(stage, answer):
    with pytest.raises(ModelError, match="names no type of numbers"):
        heat(stage, get_var_type=answer).kind(OUT)


def variable(model, name=OUT):
    return Variable(model, name, "port", {})


def test_memory_of_any_layout(stage):
    """Strides, Fortran order and one dimension are the same values; another shape is an error."""
    values = np.arange(35.0).reshape(5, 7)
    wide = np.zeros((10, 14))
    wide[::2, ::2] = values
    for memory in (wide[::2, ::2], np.asfortranarray(values), values.reshape(-1), values[::-1][::-1]):
        assert np.array_equal(variable(heat(stage, get_value_ptr=memory)).values(), values)
    with pytest.raises(ModelError, match=r"35 values of shape \(7, 5\), and the grid has 5 by 7"):
        variable(heat(stage, get_value_ptr=values.T)).values()


def test_values_that_a_model_does_not_write(stage):
    model = heat(stage, get_value_ptr=absent, get_value=None)
    assert not np.any(variable(model).values())


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"get_var_nbytes": 281}, "get_var_nbytes.*returned 281, and get_var_itemsize tells 8"),
        ({"get_grid_rank": 1.5}, "get_grid_rank.*returned 1.5, and not a count"),
        ({"get_grid_rank": 2**31 - 1}, "too many dimensions"),
        ({"get_grid_shape": [-5, -7]}, r"get_grid_shape.*returned \[-5, -7\], and not counts"),
        ({"get_grid_shape": [5, float("nan")]}, "get_grid_shape.*and not counts"),
        ({"get_grid_shape": [[5], [7, 1]]}, "get_grid_shape.*and not 2 numbers"),
    ],
)
def test_sizes_that_are_none(stage, answers, said):
    with pytest.raises(ModelError, match=said):
        variable(heat(stage, **answers))


def test_faces_with_fewer_than_no_nodes(stage):
    mesh = zoo.Mesh()
    mesh.initialize(str(stage.write("config.json", "{}")))
    mesh.get_grid_nodes_per_face = lambda grid, nodes: [4, -3, 3]
    with pytest.raises(ModelError, match=r"get_grid_nodes_per_face.*-3"):
        Grid(Model("mesh", mesh), 0).told()


def test_a_class_that_cannot_be_made(stage):
    path = stage.write("licensed.py", "import zoo\nclass Plate(zoo.Heat):\n    def __init__(self, licence): pass\n")
    with pytest.raises(TypeError) as caught:
        make(f"{path}:Plate")
    assert "in making" in caught.value.__notes__[0] and "without arguments" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (np.float64, np.array([2**53 + 1])),
        (np.float32, np.array([1e300])),
        (np.float32, np.array([2**24 + 1], np.int32)),
        (np.int64, np.array([2**63], np.uint64)),
    ],
)
def test_numbers_that_a_variable_cannot_hold(stage, kind, values):
    tank = zoo.Tank()
    tank.initialize(str(stage.write("config.json", "{}")))
    tank.arrays["tank__inflow"] = np.zeros(1, kind)
    with pytest.raises(ModelError, match="cannot hold: have the sender tell smaller numbers"):
        Variable(Model("tank", tank), "tank__inflow", "in", {}).read(values, (1,))


def test_complex_numbers_keep_both_parts():
    convert = conversion("km", "m")
    assert convert and convert(np.array([1 + 2j])) == np.array([1000 + 2000j])


@pytest.mark.parametrize("unit", ["0 m", "1e999999999 m", "1e-999999999 m", "m999999999"])
def test_units_that_no_number_can_have(unit):
    with pytest.raises(UnitError, match=r"too (small|large)"):
        parse(unit)


def test_units_too_far_apart():
    with pytest.raises(UnitError, match="too many 'nm'"):
        conversion("1e300 km", "nm")


def test_intervals_begin_where_the_model_is(stage):
    """A model that goes on from an earlier run is not at its start."""
    model = heat(stage)
    model._model.update()
    model._model.update()
    clock = Clock(model, Options(every={"": Fraction(1, 2)}), ["out"])
    times = []
    while not clock.is_over():
        assert clock.is_due("out")
        times.append((clock.now, clock.next("out")))
        clock.advance()
    assert times == [(0.5, 1.0), (1.0, 1.5), (1.5, None)]


def test_update_until_that_fails_on_the_way(stage):
    """Whole steps do not stand for it: they would begin where it has come to."""

    def on_the_way(plate, time):
        plate.update()
        raise NotImplementedError("diverged")

    clock = Clock(heat(stage, update_until=on_the_way), Options(every={"": Fraction(1)}), ["out"])
    with pytest.raises(ModelError, match=r"update_until\(1.0\) of heat has failed at 0.25, on the way from 0 s"):
        clock.advance()


@pytest.mark.parametrize("time", ["1e400", "1e-400", "-1 s", "0"])
def test_durations_that_no_use_can_have(time):
    for name in ("every", "end"):
        with pytest.raises(ModelError, match="a time above 0 is needed"):
            read_options({name: time}, {})


def filled(stage, content, **settings):
    """What a model reads for a configuration with places."""
    path, folder = stage.folder / "c.txt", stage.folder / "work"
    path.write_bytes(content)
    folder.mkdir(exist_ok=True)
    with open(config.fill(str(path), settings, lambda name, unit: settings[name], folder), "rb") as file:
        return file.read()


def test_all_but_the_places_stays_as_it_is(stage):
    for text in (b"\xfcber: {a}\r\n", b"} { {{a}} {a }: {a}{} '{\"a\": 1}'\n\r"):
        assert filled(stage, text, a=1) == text.replace(b"{{a}}", b"{@}").replace(b"{a}", b"1").replace(b"@", b"a")
    assert filled(stage, b"\x89HDF\0{a}", a=1) == b"\x89HDF\0{a}"


def test_settings_of_each_kind_are_json(stage):
    settings = {"a": 1.5e300, "b": True, "c": [1, 2], "d": [[1.5, -0.0]], "e": 2**53}
    text = filled(stage, b'{"a":{a},"b":{b},"c":{c},"d":{d},"e":{e},"f":"{f}"}', **settings, f="x{y}")
    assert json.loads(text) == settings | {"f": "x{y}"}


def test_a_place_of_a_setting_that_is_there(stage):
    """Its own name is not what may be meant."""
    with pytest.raises(ModelError) as caught:
        filled(stage, b"{aa}", aaa=1)
    assert "aaa may be meant" in str(caught.value)

    def refuse(name, unit):
        raise ValueError("no furlongs")

    (stage.folder / "c.txt").write_text("{aaa:furlong}")
    with pytest.raises(ModelError) as caught:
        config.fill(str(stage.folder / "c.txt"), {"aaa": 1}, refuse, stage.folder)
    assert "no furlongs. To write" in str(caught.value)
