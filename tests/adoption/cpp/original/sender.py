"""Sends data of every kind on ``out``, and writes down what comes back on ``in``."""

import numpy as np
import record
from libmuscle import Grid, Instance, Message
from ymmsl.v0_2 import Operator, Settings

FLAGS = np.array([True, False, False, True, True, False])
SMALL = np.array([1, -2, 3, -4, 5, -6], np.int32)
LARGE = np.array([1, -2, 1 << 62, -4, 5, -6])
SINGLES = np.array([0.5, 1e-30, -0.0, 3.25, 7, 1 / 3], np.float32)
REALS = np.array([0.1, 1e-300, -0.0, 3.25, 1e300, 1 / 3])

VALUES = [
    None,
    True,
    False,
    0,
    -7,
    1 << 40,
    (1 << 64) - 1,
    0.1,
    -1e-320,
    "",
    "text with é",
    bytes([0, 60, 120, 180]),
    b"",
    [],
    [1, "two", 3.0, None, True],
    {},
    {"x": 1.5, "inner": {"list": [1, 2]}},
    {"keep": 1, "change": [1.5, [None, None]], "add": {}},
    Settings({"a": 1, "b.c": [0.5, 1.5], "d": "text", "e": True}),
    Grid(FLAGS),
    Grid(SMALL.reshape(2, 3), ["y", "x"]),
    Grid(LARGE.reshape(3, 2, order="F")),
    Grid(SINGLES.reshape(1, 2, 3), ["a", "b", "c"]),
    Grid(REALS.reshape(2, 3, order="F"), ["y", "x"]),
    Grid(REALS[:0], ["none"]),
    {"u": Grid(REALS, ["x"]), "n": 6},
]

instance = Instance({Operator.O_I: ["out"], Operator.S: ["in"]})
while instance.reuse_instance():
    for i, value in enumerate(VALUES):
        t = 0.1 * i
        instance.send("out", Message(t, t + 0.1 if i + 1 < len(VALUES) else None, value))
        record.line(f"back {i}", instance.receive("in"))
