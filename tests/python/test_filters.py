"""Filters that are Python functions."""

from __future__ import annotations

import pytest
import titin

from .conftest import pair

FILTERS = """
def double(data):
    return data * 2

def describe(data):
    return {"sum": float(data.sum()), "data": data}

def broken(data):
    raise ValueError("no such luck")
"""


def model(stage, monkeypatch, name):
    stage.program("titin_test_filters", FILTERS)
    monkeypatch.syspath_prepend(stage.folder)
    made = pair(name)
    made.titin = {"filters": {name: {"python": f"titin_test_filters:{name}"}}}
    return made


def sender(instance):
    import numpy as np

    while instance.reuse():
        instance.send("out", np.arange(6.0).reshape(2, 3).T, timestamp=1.0, next_timestamp=2.0)


def receiver(instance):
    while instance.reuse():
        message = instance.receive("in")
    return message.data, message.timestamp, message.next_timestamp


def test_a_function_changes_the_data(stage, monkeypatch):
    data, time, following = stage.play(sender, receiver, model(stage, monkeypatch, "double"))["receiver"]
    assert data.tolist() == [[0.0, 6.0], [2.0, 8.0], [4.0, 10.0]]
    assert (time, following) == (1.0, 2.0)


def test_a_function_may_give_a_structure(stage, monkeypatch):
    data, _, _ = stage.play(sender, receiver, model(stage, monkeypatch, "describe"))["receiver"]
    assert data["sum"] == 15.0
    assert data["data"].shape == (3, 2)


def test_a_function_that_fails_is_named(stage, monkeypatch):
    raised, log = stage.fails(sender, receiver, model(stage, monkeypatch, "broken"))
    assert isinstance(raised, titin.FilterError)
    for word in ("broken", "no such luck"):
        assert word in str(raised)
        assert word in log


def test_a_function_that_is_not_there_is_named(stage, monkeypatch):
    made = model(stage, monkeypatch, "double")
    made.titin["filters"]["double"]["python"] = "titin_test_filters:duoble"
    with pytest.raises(titin.FilterError, match="duoble"):
        stage.play(sender, receiver, made)
