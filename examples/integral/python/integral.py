#!/usr/bin/env python3
"""The integral of exp(-x*x) from 0 to a limit. The ranks share the work: each adds up some of the points."""

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(f_init=["limit"], o_f=["integral"], comm=comm) as instance:
    while instance.reuse():
        # F_INIT: all ranks get the message that rank 0 receives.
        points = instance.setting("points", int)
        msg = instance.receive("limit")

        # S
        dx = msg.data / points
        x = (np.arange(comm.rank, points, comm.size) + 0.5) * dx
        mine = float(np.exp(-x * x).sum() * dx)
        total = comm.reduce(mine)

        # O_F: all ranks call send, and the data of rank 0 go out.
        instance.send("integral", total, timestamp=msg.timestamp)
