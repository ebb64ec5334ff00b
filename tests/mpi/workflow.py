"""One of the three programs of a workflow: `app1`, `app2`, `app3`. No program knows at which steps it is coupled.

app1 produces temperature and velocity. app2 takes the temperature, app3 the velocity.
"""

from __future__ import annotations

import os
import sys

import numpy as np
import titin

SHAPE, STEPS = (12, 10), 22

name = sys.argv[1]
ports = {"app1": {"o_i": ["temperature", "velocity"]}, "app2": {"s": ["temperature"]}, "app3": {"s": ["velocity"]}}
comm = None
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD

with titin.Instance(**ports[name], comm=comm) as instance:
    instance.reuse()
    along = 1 if name == "app2" else 0
    processes = [1, 1]
    processes[along] = instance.ranks
    numbers = np.arange(float(np.prod(SHAPE))).reshape(SHAPE)
    mine = np.array_split(numbers, instance.ranks, along)[instance.rank]
    variables = [variable for variables in ports[name].values() for variable in variables]
    fields = [instance.field(variable, SHAPE, float, owned=titin.Grid(processes)) for variable in variables]
    coupled = []
    for step in range(1, STEPS + 1):
        for field in fields:
            if name == "app1":
                field.send(mine + 1000 * step, timestamp=float(step))
                continue
            got = np.zeros_like(mine)
            stamps = field.receive(got)
            if stamps is None:
                assert not got.any(), (step, got)
                continue
            assert stamps.timestamp == step, (step, stamps)
            width = mine.shape[1] if name == "app2" else 5
            assert np.array_equal(got[:, :width], mine[:, :width] + 1000 * step), (step, got)
            assert not got[:, width:].any(), (step, got)
            coupled.append(step)
    assert coupled == {"app1": [], "app2": list(range(1, 21)), "app3": [1, 5, 9]}[name], (name, coupled)
