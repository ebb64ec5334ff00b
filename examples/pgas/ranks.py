#!/usr/bin/env python3
"""Both fields arrive in the ranks of an MPI program, each of which has some rows."""

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(f_init=["temperature", "velocity"], comm=comm) as instance:
    nx, ny = instance.setting("nx", int), instance.setting("ny", int)
    rows = titin.Grid((comm.size, 1))
    fields = [instance.field(port, (nx, ny), float, owned=rows) for port in ("temperature", "velocity")]
    x, y = np.array_split(np.arange(1, nx + 1), comm.size)[comm.rank][:, None], np.arange(1, ny + 1)
    temperature, velocity = np.empty((len(x), ny)), np.empty((len(x), ny))

    steps = 0
    while instance.reuse():
        # F_INIT
        t, _ = fields[0].receive(temperature)
        fields[1].receive(velocity)

        # S
        if not np.array_equal(temperature, t + x * y) or not np.array_equal(velocity, t * (x - y)):
            raise ValueError(f"a number of rank {comm.rank} is wrong")
        steps += 1
    if comm.rank == 0:
        print(f"{steps} steps: temperature and velocity are right in the rows of {comm.size} ranks")
