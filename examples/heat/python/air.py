#!/usr/bin/env python3
"""The heat that a warm plate loses to the air. Each rank has some columns."""

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(f_init=["temperature"], o_f=["loss"], comm=comm) as instance:
    ny, nx = instance.setting("ny", int), instance.setting("nx", int)
    k = instance.setting("k", float)
    columns = titin.Grid((1, comm.size))
    temperature = instance.field("temperature", (ny, nx), float, owned=columns)
    loss = instance.field("loss", (ny, nx), float, owned=columns)
    u = np.empty(loss.extents)

    while instance.reuse():
        # F_INIT
        t, _ = temperature.receive(u)

        # S
        u *= k

        # O_F
        loss.send(u, timestamp=t)
