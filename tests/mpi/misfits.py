"""Two ends of a field that do not fit each other, or that make wrong calls: `misfits.py a|b CASE`."""

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import titin

side, case = sys.argv[1:]
comm = None
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
ranks = comm.size if comm else 1
first = side == "a"


def declare(instance, port="x", shape=(12, 6), dtype="f8", **more):
    more = {"owned": titin.Grid((ranks, 1))} | more
    return instance.field(port, shape=shape, dtype=dtype, **more)


def exchange(field, *arrays, begin=0, steps=1):
    for step in range(begin, begin + steps):
        if first:
            field.send(*arrays, timestamp=float(step))
        else:
            field.receive(*arrays)


def local(dtype="f8", shape=(12, 6)):
    return np.zeros((shape[0] // ranks, *shape[1:]), dtype)


def ordinary(instance, steps=3):
    for step in range(steps):
        if first:
            instance.send("x", np.zeros(3), timestamp=float(step))
        else:
            instance.receive("x")


def until_all_is_sent():
    """Keeps the receiver from closing before the sender has sent everything, since the error counts the messages left
    over."""
    sign = Path("../../../all_sent")
    if first:
        sign.touch()
    while not sign.exists():
        time.sleep(0.001)


def here(rank):
    return ranks > 1 and instance.rank == rank


with titin.Instance(o_i=["x"] if first else ["y"], s=["y"] if first else ["x"], comm=comm) as instance:
    instance.reuse()
    match case:
        case "shapes":
            shape = (12, 6) if first else (12, 7)
            exchange(declare(instance, shape=shape), local(shape=shape))
        case "dims":
            shape = (12, 6) if first else (12, 6, 1)
            grid = titin.Grid((ranks, *[1] * (len(shape) - 1)))
            exchange(declare(instance, shape=shape, owned=grid), local(shape=shape))
        case "regions":
            region = ((0, 0), (3, 3)) if first else ((1, 1), (4, 5))
            exchange(declare(instance, region=region), local())
        case "outside":
            exchange(declare(instance, region=((0, 0), (3, 8))), local())
        case "dtypes":
            dtype = "f8" if first else "i4"
            exchange(declare(instance, dtype=dtype), local(dtype))
        case "arrays":
            dtypes = ["f8", "i4", "f8"] if first else ["f8", "i4"]
            exchange(declare(instance, dtype=dtypes), *map(local, dtypes))
        case "sender ordinary":
            if first:
                ordinary(instance)
            else:
                exchange(declare(instance), local())
        case "receiver ordinary":
            if first:
                exchange(declare(instance), local())
            else:
                ordinary(instance)
        case "receiver ordinary into":
            if first:
                exchange(declare(instance), local())
            else:
                instance.receive_into("x", np.zeros(4))
        case "sender declares nothing":
            if not first:
                exchange(declare(instance), local())
        case "receiver declares nothing":
            if first:
                exchange(declare(instance), local())
        case "receiver waits for something else":
            if first:
                exchange(declare(instance), local())
            else:
                instance.send("y", 1, timestamp=0.0)
                instance.receive("x", timeout=0.2)
                exchange(declare(instance), local())
        case "both wait":
            field = declare(instance, "y" if first else "x")
            field.receive(local())
        case "declared late":
            if first:
                exchange(declare(instance), local())
                instance.receive("y")
            else:
                with contextlib.suppress(titin.Timeout):
                    declare(instance).receive(local(), timeout=0.01)
                instance.send("y", 1, timestamp=0.0)
        case "ranks differ":
            shape = (12, 6) if first or instance.rank == 0 else (12, 8)
            exchange(declare(instance, shape=shape), local(shape=shape))
        case "too many ranks":
            exchange(declare(instance, owned=titin.Grid((ranks + 1, 1))), local())
        case "local shape":
            exchange(declare(instance), np.zeros((2, 2)))
        case "local list":
            exchange(declare(instance), [0.0] * 72 if first else local())
        case "local dtype":
            exchange(declare(instance), local("f4"))
        case "local count":
            exchange(declare(instance), local(), local())
        case "read only":
            array = local()
            array.flags.writeable = first
            exchange(declare(instance), array)
        case "twice":
            declare(instance)
            exchange(declare(instance), local())
        case "negative":
            exchange(declare(instance, shape=(12, -6)), local())
        case "field and message":
            exchange(declare(instance), local())
            ordinary(instance)
        case "receives less":
            exchange(declare(instance), local(), steps=5 if first else 2)
            until_all_is_sent()
        case "receives more":
            exchange(declare(instance), local(), steps=2 if first else 5)
        case "a closes early" | "b closes early":
            field = declare(instance)
            exchange(field, local())
            if not (here(1) and side == case[0]):
                for step in range(1, 5):
                    exchange(field, local(), begin=step)
        case "a raises" | "b raises":
            field = declare(instance)
            for step in range(1000):
                exchange(field, local(), begin=step)
                if step == 3 and side == case[0] and instance.rank == ranks - 1:
                    raise ValueError("the pressure is negative")
        case "a dies" | "b dies":
            field = declare(instance)
            for step in range(100_000):
                exchange(field, local(), begin=step)
                if step == 100 and side == case[0] and instance.rank == ranks - 1:
                    os.kill(os.getpid(), signal.SIGKILL)
        case other:
            raise SystemExit(f"no case {other!r}")
