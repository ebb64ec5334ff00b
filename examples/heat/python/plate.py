#!/usr/bin/env python3
"""Heat spreads through a plate, of which each rank has some rows. Another program computes the loss to the air."""

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(o_i=["temperature"], s=["loss"], comm=comm) as instance:
    ny, nx = instance.setting("ny", int), instance.setting("nx", int)
    d, dt, t_max = (instance.setting(name, float) for name in ("d", "dt", "t_max"))

    # The temperature has a halo of one on all sides; the loss has none.
    rows = titin.Grid((comm.size, 1))
    temperature = instance.field("temperature", (ny, nx), float, owned=rows, halo=1)
    loss = instance.field("loss", (ny, nx), float, owned=rows)

    # A hot patch on a cold plate, whose rim stays cold.
    u, q = np.zeros(temperature.extents), np.zeros(loss.extents)
    inside, mine = u[1:-1, 1:-1], loss.owned[0]
    inside[(mine >= ny // 6) & (mine < ny // 2), nx // 5 : nx // 2] = 100.0
    above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    below = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL

    while instance.reuse():
        for step in range(round(t_max / dt)):
            # O_I
            t = step * dt
            temperature.send(u, timestamp=t, next_timestamp=t + dt)

            # S
            loss.receive(q)
            comm.Sendrecv(u[1], above, recvbuf=u[-1], source=below)
            comm.Sendrecv(u[-2], below, recvbuf=u[0], source=above)
            around = (u[:-2, 1:-1] + u[2:, 1:-1]) + (u[1:-1, :-2] + u[1:-1, 2:])
            inside += dt * (d * (around - 4.0 * inside) - q)
