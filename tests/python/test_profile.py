"""MUSCLE3's own tools read a profile of titin: its ``ProfileDatabase``, and ``muscle3 profile``."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from titin.model import Model

from ..conftest import muscle3, muscle3_module
from .conftest import Stage

FOLDER = muscle3("0.11")


ProfileDatabase = muscle3_module("libmuscle/manager/profile_database.py").ProfileDatabase

MACRO = """
import titin

with titin.Instance(o_i="out", s="back") as instance:
    while instance.reuse():
        for time in range(5):
            instance.send("out", [1.0] * 100, timestamp=time)
            instance.receive("back")
"""

MICRO = """
import titin

with titin.Instance(f_init="in", o_f="final") as instance:
    while instance.reuse():
        message = instance.receive("in")
        instance.send("final", message.data, timestamp=message.timestamp)
"""

#: The events that MUSCLE3 keeps of every instance, and of every received message, in order.
LIFE = ["REGISTER", "CONNECT", "SHUTDOWN_WAIT", "DISCONNECT_WAIT", "SHUTDOWN", "DEREGISTER"]
WITHIN = ["RECEIVE_WAIT", "RECEIVE_TRANSFER", "RECEIVE_DECODE"]


def calls(trace: bool) -> Model:
    model = Model("calls")
    if trace:
        model.settings["muscle_profile_level"] = "all"
    model.component("macro", "macro", o_i="out", s="back")
    model.component("micro", "micro", f_init="in", o_f="final")
    model.conduit("macro.out", "micro.in")
    model.conduit("micro.final", "macro.back")
    return model


def profile(stage: Stage, trace: bool = False, micro: str = MICRO, status: int = 0) -> Path:
    process = stage.launch(calls(trace), macro=MACRO, micro=micro)
    output = process.communicate()[0]
    assert process.returncode == status, output + stage.output()
    return stage.folder / "run" / "performance.sqlite"


def rows(path: Path, *types: str) -> list[tuple[str, str, int, int]]:
    """Instance, type, start and stop of the events of these types, in the order of writing."""
    with sqlite3.connect(path) as database:
        marks = ", ".join("?" * len(types))
        sql = f"SELECT instance, type, start_time, stop_time FROM all_events WHERE type IN ({marks})"
        return database.execute(sql, types).fetchall()


def plots(path: Path) -> None:
    """Runs ``muscle3 profile`` with every kind of drawing."""
    command = [sys.executable, "-m", "muscle3.muscle3", "profile", "--instances", "--resources", "--timeline", path]
    environment = os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(FOLDER)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def stats(path: Path) -> dict[str, tuple[float, float, float]]:
    """Seconds that each instance ran, communicated and waited, if ProfileDatabase accepts the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ProfileDatabase(path) as database:
            names, *times = database.instance_stats()
    return dict(zip(names, zip(*times, strict=True), strict=True))


def lives(path: Path) -> dict[str, list[str]]:
    """The events of each instance that joins and leaves. Each event begins where the previous event ended, or later."""
    found: dict[str, list[str]] = {}
    ends: dict[str, int] = {}
    for name, kind, start, stop in rows(path, *LIFE):
        assert ends.get(name, 0) <= start <= stop, (name, kind)
        ends[name] = stop
        found.setdefault(name, []).append(kind)
    return found


def test_joining_and_leaving_is_there_without_a_trace(stage):
    path = profile(stage)
    assert lives(path) == {"macro": [kind for kind in LIFE if kind != "SHUTDOWN_WAIT"], "micro": LIFE}
    assert rows(path, "SEND", "RECEIVE", *WITHIN) == []
    times = stats(path)
    assert set(times) == {"macro", "micro"}
    assert all(ran > 0 and communicated == waited == 0 for ran, communicated, waited in times.values())
    with ProfileDatabase(path) as database:
        cores = database.resource_stats()
    assert {name for core in cores.values() for name in core} == {"macro", "micro"}
    plots(path)


def test_a_trace_tells_waiting_and_decoding_within_each_receive(stage):
    path = profile(stage, trace=True)
    for name, (ran, communicated, waited) in stats(path).items():
        assert ran > 0 and communicated > 0 and waited > 0, name
    received: dict[str, list[tuple[str, int, int]]] = {}
    for name, *row in rows(path, "RECEIVE", *WITHIN):
        received.setdefault(name, []).append(tuple(row))
    for name in ("macro", "micro"):
        assert len(received[name]) == 5 * 4, name
        for at in range(0, 20, 4):
            *within, (kind, start, stop) = received[name][at : at + 4]
            assert [row[0] for row in within] == WITHIN and kind == "RECEIVE"
            # Each event begins where the previous one ends, and together they fill the receive.
            edges = [start, *(edge for row in within for edge in row[1:]), stop]
            assert edges == sorted(edges) and edges[::2] == edges[1::2]
    assert all(kinds[0] == "REGISTER" and kinds[-1] == "DEREGISTER" for kinds in lives(path).values())
    with ProfileDatabase(path) as database:
        taken = {kind: database.time_taken(etype=kind) for kind in [*LIFE, "SEND", "RECEIVE", *WITHIN]}
        assert taken["RECEIVE"] == pytest.approx(sum(taken[kind] for kind in WITHIN), rel=1e-3)
        computing = {"etype": "RECEIVE", "port": "in", "time": "stop", "etype2": "SEND", "port2": "final"}
        assert database.time_taken(instance="micro", time2="start", **computing) > 0
    plots(path)


@pytest.mark.parametrize("fault", ["raise RuntimeError('no')", "import os; os.kill(os.getpid(), 9)"])
@pytest.mark.parametrize("trace", [True, False])
def test_a_run_that_failed_can_be_looked_at_too(stage, fault, trace):
    path = profile(stage, trace, micro=MICRO.replace("instance.send", f"{fault}; instance.send"), status=1)
    killed = "kill" in fault
    # No event tells when a killed instance has left.
    assert set(lives(path)) == ({"macro"} if killed else {"macro", "micro"})
    assert all(kinds[:2] == LIFE[:2] and kinds[-1] == "DEREGISTER" for kinds in lives(path).values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ProfileDatabase(path) as database:
            assert set(database.instance_stats()[0]) == set(lives(path))


SENDS = """
import numpy as np
import titin

with titin.Instance(o_i="out", s="back") as instance:
    field = instance.field("out", (300, 200), float)
    while instance.reuse():
        for time in range(5):
            field.send(np.ones((300, 200)), timestamp=time)
            instance.receive("back")
"""

RECEIVES = """
import numpy as np
import titin

with titin.Instance(s="in", o_i="final") as instance:
    field = instance.field("in", (300, 200), float)
    while instance.reuse():
        for time in range(5):
            field.receive(np.empty((300, 200)))
            instance.send("final", timestamp=time)
"""


def test_the_pieces_of_fields_are_counted(stage):
    model = Model("calls")
    model.component("macro", "macro", o_i="out", s="back")
    model.component("micro", "micro", s="in", o_i="final")
    model.conduit("macro.out", "micro.in")
    model.conduit("micro.final", "macro.back")
    stage.run(model, macro=SENDS, micro=RECEIVES)
    with sqlite3.connect(stage.folder / "run" / "performance.sqlite") as database:
        counts = database.execute(
            "SELECT sends, messages, bytes FROM conduit_ends WHERE port IN ('out', 'in')"
        ).fetchall()
    assert sorted(sends for sends, _, _ in counts) == [0, 1]
    for _, messages, count in counts:
        assert messages == 5
        assert 5 * 300 * 200 * 8 <= count < 5 * 300 * 200 * 8 + 5000
