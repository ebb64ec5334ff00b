"""Structures arrive as they were sent."""

from __future__ import annotations

import math

import numpy as np
import pytest
import titin


@pytest.mark.parametrize(
    "data",
    [
        None,
        True,
        False,
        0,
        -1,
        2**63 - 1,
        -(2**63),
        2**64 - 1,
        1.5,
        -0.0,
        math.inf,
        "",
        "text",
        "ü, 水 and \U0001f30a",
        "with a \0 inside",
        b"",
        b"bytes \0 \xff",
        [],
        {},
        [1, [2, [3, []]]],
        {"a": {"b": {"": None}}, "c": [True, "x", b"y", 2.5]},
    ],
    ids=lambda data: repr(data)[:30],
)
def test_what_is_sent_arrives(echo, data):
    received = echo(data).data
    assert received == data
    assert type(received) is type(data)


def test_not_a_number(echo):
    assert math.isnan(echo(math.nan).data)


def test_maps_keep_their_order(echo):
    names = ["z", "a", "m", "b"]
    assert list(echo({name: index for index, name in enumerate(names)}).data) == names


def test_tuples_become_lists(echo):
    assert echo((1, (2, 3))).data == [1, [2, 3]]


@pytest.mark.parametrize(
    ("scalar", "plain"),
    [
        (np.float64(1.5), 1.5),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("text"), "text"),
    ],
    ids=lambda scalar: type(scalar).__name__,
)
def test_scalars_of_numpy_are_plain_ones(echo, scalar, plain):
    for received in (echo(scalar).data, echo([scalar]).data[0]):
        assert received == plain
        assert type(received) is type(plain)


@pytest.mark.parametrize("number", [1.5, 0.1, math.inf])
def test_single_precision_is_kept(echo, number):
    single = np.float32(number)
    for received in (echo(single).data, echo([single]).data[0], echo({"a": {"b": single}}).data["a"]["b"]):
        assert received == single
        assert type(received) is np.float32


@pytest.mark.parametrize("settings", [{}, {"k": 2.5, "a.b": [1, 2], "rows": [[1.0, 2.0]]}, {"k": {"deep": None}}])
def test_settings_keep_their_mark(echo, settings):
    marked = titin.Settings(settings)
    for received in (echo(marked).data, echo([marked]).data[0], echo(titin.Settings(k=marked)).data["k"]):
        assert received == settings
        assert type(received) is titin.Settings
        assert repr(received) == f"Settings({settings})"
    assert type(echo(dict(marked)).data) is dict


def test_complex_numbers_are_arrays_without_dimensions(echo):
    for number in (1 + 2j, np.complex64(1 + 2j)):
        received = echo(number).data
        assert received.shape == ()
        assert received == 1 + 2j
        assert echo({"z": number}).data["z"] == 1 + 2j


def test_arrays_within(echo):
    field, mask = np.arange(12.0).reshape(3, 4), np.array([True, False])
    received = echo({"field": field, "more": [mask, field.T, field[:, ::2]], "n": 3}).data
    np.testing.assert_array_equal(received["field"], field)
    np.testing.assert_array_equal(received["more"][0], mask)
    np.testing.assert_array_equal(received["more"][1], field.T)
    np.testing.assert_array_equal(received["more"][2], field[:, ::2])
    assert received["more"][1].flags.f_contiguous
    assert not received["field"].flags.writeable
    assert received["field"].ctypes.data % 64 == 0


def test_many_small_and_some_large(echo):
    data = {f"a{index}": np.full(index, index, "i4") for index in range(300)}
    data["large"] = np.arange(1_000_000)
    received = echo(data).data
    assert list(received) == list(data)
    for name, array in data.items():
        np.testing.assert_array_equal(received[name], array)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1])
def test_integers_of_more_than_64_bits_are_refused(echo, number):
    with pytest.raises(titin.TypeMismatch, match="64 bits"):
        echo(number)


def test_keys_must_be_text(echo):
    with pytest.raises(titin.TypeMismatch, match=r"key 1: keys are text; use str\(key\)"):
        echo({1: 2})


def test_what_holds_itself_is_refused(echo):
    data: list[object] = []
    data.append(data)
    with pytest.raises(titin.TypeMismatch, match="hold itself"):
        echo(data)
    assert echo("still here").data == "still here"


def test_deep_but_not_too_deep(echo):
    data: object = 1
    for _ in range(90):
        data = [data]
    assert echo(data).data == data


@pytest.mark.parametrize("data", ["\ud800", {"\ud800": 1}, {"a\0b": 1}])
def test_text_that_is_no_unicode_is_refused(echo, data):
    with pytest.raises(titin.UsageError, match=r"not Unicode|character 0"):
        echo(data)


def test_a_settings_overlay_goes_along(echo):
    settings = {"k": 2.5, "n": 3, "on": True, "name": "x", "list": [1, 2], "reals": [1.5, 2.0], "table": [[1.0, 2.0]]}
    assert echo(None, settings=settings).settings == settings
    assert echo(None).settings == {}


def test_messages_show_what_they_are(echo):
    assert "float64 array of shape (2, 3)" in repr(echo(np.zeros((2, 3))))
    assert "data='x'" in repr(echo("x"))
    own = titin.Message([1, 2], timestamp=1.5, next_timestamp=2.0)
    assert repr(own) == "Message(timestamp=1.5, next_timestamp=2.0, data=[1, 2])"
    assert (own.timestamp, own.next_timestamp, own.data, own.settings) == (1.5, 2.0, [1, 2], {})


def test_data_that_there_is_no_memory_for_are_named_by_their_size(echo):
    """A size beyond any process's memory, without the data."""
    huge = np.broadcast_to(np.zeros(1), (2**45,))
    for data in (huge, {"huge": huge}):
        with pytest.raises(titin.OutOfMemory, match=f"no memory for a message of {8 * 2**45} bytes"):
            echo(data)
