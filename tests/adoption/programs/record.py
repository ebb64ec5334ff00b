"""What a program of these models has got, as lines of JSON that show every bit; and the choice of its function."""

import json
import sys

import numpy as np
from libmuscle import Grid, Instance, InstanceFlags, Message
from ymmsl import Operator

F_INIT, O_I, S, O_F = Operator.F_INIT, Operator.O_I, Operator.S, Operator.O_F

__all__ = [
    "F_INIT",
    "O_F",
    "O_I",
    "Grid",
    "Instance",
    "InstanceFlags",
    "Message",
    "S",
    "attempt",
    "echo",
    "main",
    "record",
]


def record(what, value=None):
    """Writes a line with a value that the program has got."""
    print(json.dumps([what, exact(value)]), flush=True)


def attempt(what, call, *arguments, words=None, **named):
    """Makes a call, and records its result; of an exception its class, and its text's first words."""
    try:
        record(what, call(*arguments, **named))
    except Exception as raised:
        # A library may derive a class of its own from the documented one.
        documented = next(kind for kind in type(raised).__mro__ if kind.__module__ == "builtins")
        text = " ".join(str(raised.args[0] if raised.args else "").split()[:words])
        record(what, [documented.__name__, text])


def exact(value):
    """A value as JSON without any rounding."""
    if isinstance(value, Message):
        settings = None if value.settings is None else exact(value.settings)
        return ["message", exact(value.timestamp), exact(value.next_timestamp), exact(value.data), settings]
    if isinstance(value, Grid):
        array = value.array
        order = [bool(array.flags.c_contiguous), bool(array.flags.f_contiguous), bool(array.flags.writeable)]
        return ["grid", str(array.dtype), list(array.shape), order, value.indexes, array.tobytes("C").hex()]
    if isinstance(value, np.ndarray):
        return ["array", exact(Grid(value))]
    if isinstance(value, Operator):
        return value.name
    if hasattr(value, "as_ordered_dict"):
        return ["settings", {str(name): exact(one) for name, one in sorted(value.as_ordered_dict().items())}]
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, dict):
        return ["dict", [[exact(key), exact(one)] for key, one in value.items()]]
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(exact, value)]
    return value


def echo():
    """The function of a program that records what it gets in each use, and sends it back."""
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", message)
        instance.send("final", message)


def main(functions):
    """Calls the function that the command line names."""
    functions[sys.argv[1]]()
