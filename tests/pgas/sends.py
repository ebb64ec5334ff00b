"""Sends 13 by 7 numbers. `sends.py versions` sends them six times on two ports, and gets a field back that is
withdrawn."""

import sys

import numpy as np
import titin

SHAPE = (13, 7)


def versions(instance):
    x, y, back = (instance.field(name, SHAPE, float) for name in ("x", "y", "back"))
    numbers = np.arange(91.0).reshape(SHAPE)
    for t in range(6):
        x.send(numbers + 1000 * t, timestamp=float(t), next_timestamp=t + 1.0)
        y.send(numbers, timestamp=float(t))
    back.receive(numbers)
    try:
        back.receive(numbers)
    except titin.PortClosed:
        return
    raise AssertionError("it was withdrawn")


several = sys.argv[1:] == ["versions"]
with titin.Instance(**({"o_i": ["x", "y"], "s": ["back"]} if several else {"o_i": ["x"]})) as instance:
    instance.reuse()
    if several:
        versions(instance)
    else:
        instance.field("x", SHAPE, float).send(np.zeros(SHAPE), timestamp=0.0)
