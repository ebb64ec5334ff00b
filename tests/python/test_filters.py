"""Filters that are Python functions, and titin's filters that change numbers."""

from __future__ import annotations

import importlib
import subprocess

import numpy as np
import pytest
import titin

from .conftest import pair

FILTERS = """
import titin
def double(data):
    return data * 2

def describe(data):
    return {"sum": float(data.sum()), "data": data}

def later(data, message):
    return titin.Message(data[0], message.timestamp + 0.5, message.next_timestamp + 0.5)

def final(data):
    return titin.Message(None, 7.0)

def timeless(data):
    return titin.Message(data, float("nan"))

def back(data):
    return titin.Message(data, 10.0, 3.0)

def calling(data):
    act()
    return data

def same(data, message):
    return message

def overlaid(data):
    return titin.Message(data, settings={"a": 1})

def broken(data):
    raise ValueError("no such luck")

import threading
begun, goes_on = threading.Event(), threading.Event()

def waiting(data):
    begun.set()
    goes_on.wait()
    return data
"""


def model(stage, monkeypatch, name):
    stage.program("titin_test_filters", FILTERS)
    monkeypatch.syspath_prepend(stage.folder)
    made = pair(name)
    made.titin = {"filters": {name: {"python": f"titin_test_filters:{name}"}}}
    return made


def sender(instance):
    while instance.reuse():
        instance.send("out", np.arange(6.0).reshape(2, 3).T, timestamp=1.0, next_timestamp=2.0)


def receiver(instance):
    while instance.reuse():
        message = instance.receive("in")
    return message.data, message.timestamp, message.next_timestamp


#: A filter, data, and the result: a single number stays a single number, and arrays keep their rank.
CHANGES = {
    "scale(2.0, 0.5)": [
        (1, 2.5),
        (1.5, 3.5),
        (2**64 - 1, 2.0**65 + 0.5),
        (np.float32(1.5), np.float32(3.5)),
        (np.int16(-3), -5.5),
        (np.arange(3), np.array([0.5, 2.5, 4.5])),
        (np.array(1.5, "f4"), np.array(3.5, "f4")),
        (3 + 4j, np.array(6.5 + 8j)),
        (None, None),
    ],
    "astype(int32)": [
        (1.9, 1),
        (-1.9, -1),
        (7, 7),
        (True, 1),
        (np.array([1.9, -1.9]), np.array([1, -1], "i4")),
    ],
    "astype(uint64)": [(2**63, 2**63), (-0.9, 0)],
    "astype(float32)": [(0.1, np.float32(0.1)), (1, np.float32(1.0)), (np.array([0.1]), np.array([0.1], "f4"))],
    "astype(bool)": [(2, True), (0.0, False), (np.array([2, 0]), np.array([True, False]))],
    "astype(complex64)": [(1.5, np.array(1.5, "c8")), (1j, np.array(1j, "c8"))],
}


@pytest.mark.parametrize("name", CHANGES)
def test_numbers_change_in_arrays_and_by_themselves(stage, name):
    def sends(instance):
        while instance.reuse():
            for time, (data, _) in enumerate(CHANGES[name]):
                instance.send("out", data, timestamp=time)

    def receives(instance):
        found = []
        while instance.reuse():
            found = [instance.receive("in").data for _ in CHANGES[name]]
        return found

    for found, (_, wanted) in zip(stage.play(sends, receives, pair(name))["receiver"], CHANGES[name], strict=True):
        assert type(found) is type(wanted)
        assert np.array_equal(found, wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype


@pytest.mark.parametrize(
    ("data", "name", "words"),
    [
        (300, "uint8", "uint8 cannot hold 300"),
        (np.array([1, 2**31]), "int32", "int32 cannot hold 2147483648"),
        (-1.5, "uint8", "uint8 cannot hold -1.5"),
        (np.array([0.0, np.nan]), "int64", "int64 cannot hold NaN"),
        (np.inf, "int64", "int64 cannot hold inf"),
        (1e300, "float32", "float32 cannot hold 1e300"),
        (1j, "float64", "complex128 to float64 would lose the imaginary part"),
    ],
)
def test_what_a_type_cannot_hold_is_refused(stage, data, name, words):
    def sends(instance):
        while instance.reuse():
            instance.send("out", data, timestamp=0.0)

    raised, _ = stage.fails(sends, receiver, pair(f"astype({name})"))
    assert isinstance(raised, titin.FilterError)
    assert f"filter astype({name}) cannot be applied: {words}" in str(raised)
    assert str(raised).startswith("port '")


@pytest.mark.parametrize("data", ["1.5", [1.5], {"a": 1.5}, True])
def test_what_is_no_number_is_refused_with_the_conduit(stage, data):
    def sends(instance):
        while instance.reuse():
            instance.send("out", data, timestamp=0.0)

    raised, _ = stage.fails(sends, receiver, pair("scale(2.0)"))
    assert isinstance(raised, titin.FilterError)
    assert "port 'in' (from sender.out): filter scale(2, 0) cannot be applied" in str(raised)


def test_a_function_changes_the_data(stage, monkeypatch):
    data, time, following = stage.play(sender, receiver, model(stage, monkeypatch, "double"))["receiver"]
    assert data.tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]
    assert (time, following) == (1.0, 2.0)


def test_a_function_may_give_a_structure(stage, monkeypatch):
    data, _, _ = stage.play(sender, receiver, model(stage, monkeypatch, "describe"))["receiver"]
    assert data["sum"] == 15.0
    assert data["data"].shape == (3, 2)


def test_a_function_of_foreign_code(stage, monkeypatch):
    made = model(stage, monkeypatch, "double")
    made.titin["filters"]["double"]["python"] = "numpy:negative"
    data, _, _ = stage.play(sender, receiver, made)["receiver"]
    assert data.tolist() == [[0.0, -3.0], [-1.0, -4.0], [-2.0, -5.0]]


def test_a_function_may_change_the_timestamps(stage, monkeypatch):
    data, time, following = stage.play(sender, receiver, model(stage, monkeypatch, "later"))["receiver"]
    assert data.tolist() == [0.0, 3.0]
    assert (time, following) == (1.5, 2.5)


def test_a_function_may_take_the_next_timestamp_away(stage, monkeypatch):
    assert stage.play(sender, receiver, model(stage, monkeypatch, "final"))["receiver"] == (None, 7.0, None)


def test_a_function_may_give_the_message_back(stage, monkeypatch):
    data, time, following = stage.play(sender, receiver, model(stage, monkeypatch, "same"))["receiver"]
    assert data.shape == (3, 2)
    assert (time, following) == (1.0, 2.0)


def test_a_function_cannot_change_the_settings(stage, monkeypatch):
    raised, _ = stage.fails(sender, receiver, model(stage, monkeypatch, "overlaid"))
    assert isinstance(raised, titin.FilterError)
    assert "a filter cannot give a message settings" in str(raised)


@pytest.mark.parametrize("side", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("name", "words"),
    [("timeless", "the timestamp that it gives is not a number"), ("back", "the next timestamp that it gives is 3.0")],
)
def test_times_that_no_message_can_have_are_the_filters_fault(stage, monkeypatch, side, name, words):
    made = model(stage, monkeypatch, name)
    made.conduits.clear()
    made.conduit("sender.out", "receiver.in", f"{name}@{side}")
    raised, _ = stage.fails(sender, receiver, made)
    assert isinstance(raised, titin.FilterError)
    assert f"filter '{name}' failed: {words}" in str(raised)
    assert ("to receiver.in" if side == "sender" else "from sender.out") in str(raised)


@pytest.mark.parametrize("call", ["receive", "try_receive", "receive_any", "reuse", "close"])
def test_a_function_may_not_call_the_instance_that_it_filters_for(stage, monkeypatch, call):
    made = model(stage, monkeypatch, "calling")
    arguments = {"reuse": [], "close": []}.get(call, ["in"])
    known = []

    def receives(instance):
        def act():
            instance.log("info", "in a filter")
            known.append(instance.setting("k", int, default=7))
            getattr(instance, call)(*arguments)

        importlib.import_module("titin_test_filters").act = act
        while instance.reuse():
            instance.receive("in")

    raised, _ = stage.fails(sender, receives, made)
    assert known == [7]
    assert isinstance(raised, titin.FilterError)
    assert ("close() while" if call == "close" else "a call from within filter 'calling'") in str(raised)


def test_other_threads_make_calls_while_a_function_is_at_work(stage, monkeypatch):
    made = model(stage, monkeypatch, "waiting")
    filters = importlib.import_module("titin_test_filters")

    def sends(instance):
        while instance.reuse():
            instance.send("out", 1, timestamp=0.0)
            filters.begun.wait()
            try:
                instance.send("out", 2, timestamp=1.0)
            finally:
                filters.goes_on.set()

    def receives(instance):
        while instance.reuse():
            found = [instance.receive("in").data for _ in range(2)]
        return found

    assert stage.play(sends, receives, made)["receiver"] == [1, 2]


def test_a_function_that_fails_is_named(stage, monkeypatch):
    raised, log = stage.fails(sender, receiver, model(stage, monkeypatch, "broken"))
    assert isinstance(raised, titin.FilterError)
    for words in ("filter 'broken' failed: ValueError: no such luck", 'titin_test_filters.py", line 32, in broken'):
        assert words in str(raised)
        assert words in log


def test_a_function_that_is_not_there_is_named(stage, monkeypatch):
    made = model(stage, monkeypatch, "double")
    made.titin["filters"]["double"]["python"] = "titin_test_filters:duoble"
    with pytest.raises(titin.FilterError, match="duoble"):
        stage.play(sender, receiver, made)


def test_a_module_that_is_not_there_was_looked_for(stage, monkeypatch):
    made = model(stage, monkeypatch, "double")
    made.titin["filters"]["double"]["python"] = "titin_test_fitlers:double"
    raised, _ = stage.fails(sender, receiver, made)
    assert isinstance(raised, titin.FilterError)
    assert "No module named 'titin_test_fitlers'" in str(raised)
    assert "PYTHONPATH" in str(raised)
    assert "frozen" not in str(raised)


def library(stage, text):
    """The pair with a filter in a shared library, which this program in C makes, or which is missing."""
    if text:
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", stage.folder / "ours.so"]
        subprocess.run(command, input=text, text=True, check=True)
    made = pair("ours")
    made.titin = {"filters": {"ours": {"library": "./ours.so", "symbol": "ours"}}}
    return made


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "No such file or directory (looked for beside the files of the description, then in {folder})"),
        ("int none(void); int ours(void *in, void *out) { return none(); }", "undefined symbol: none"),
        ("int theirs(void *in, void *out) { return 0; }", "has no function ours with C linkage: "),
    ],
)
def test_a_library_that_cannot_be_used_is_explained(stage, monkeypatch, text, words):
    monkeypatch.chdir(stage.folder)
    raised, _ = stage.fails(sender, receiver, library(stage, text))
    assert isinstance(raised, titin.FilterError)
    assert words.format(folder=stage.folder) in str(raised)


@pytest.mark.parametrize("filters", [("zstd", "scale(0.5)@sender"), ("scale(0.5)", "zstd")])
def test_what_runs_at_the_sender_runs_before_the_data_are_compressed(stage, filters):
    got, _, _ = stage.play(sender, receiver, pair(*filters))["receiver"]
    assert got.tolist() == (np.arange(6.0).reshape(2, 3).T * 0.5).tolist()
