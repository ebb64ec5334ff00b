#!/usr/bin/env python3
"""A shower drifts over the land. Each rank has some rows. Other programs take the rain when they like."""

import time

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(o_i=["rain"], comm=comm) as instance:
    ny, nx, steps = (instance.setting(name, int) for name in ("ny", "nx", "steps"))
    dt, pace = instance.setting("dt", float), instance.setting("pace", float)
    rain = instance.field("rain", (ny, nx), float, owned=titin.Grid((comm.size, 1)))
    i, j = np.array_split(np.arange(ny), comm.size)[comm.rank][:, None], np.arange(nx)

    while instance.reuse():
        for step in range(steps):
            # O_I
            u = np.maximum(0.0, 20.0 - abs(i - 15 - step // 2) - abs(j - 2 * step))
            rain.send(u, timestamp=step * dt, next_timestamp=(step + 1) * dt)

            # S: a pause in place of a larger model.
            with instance.region("work"):
                time.sleep(pace)
