"""`cell.py a|b rows|columns`: one side of a pair, as cell.h says."""

import sys

import numpy as np
import titin
from mpi4py import MPI

NY, NX, STEPS = 13, 7, 48
MEDIA = ("shm", "tcp", "file")
TYPES = [np.float64, np.float32, np.int32]

comm = MPI.COMM_WORLD
side, rows = int(sys.argv[1] == "b"), sys.argv[2] == "rows"
with titin.Instance(comm=comm) as instance:
    spread = titin.Grid((comm.size, 1) if rows else (1, comm.size))
    out = [instance.field(f"out_{medium}", (NY, NX), TYPES, owned=spread) for medium in MEDIA]
    into = [instance.field(f"in_{medium}", (NY, NX), TYPES, owned=spread) for medium in MEDIA]
    last = instance.field("last", (NY, NX), TYPES, owned=spread)
    i, j = np.ix_(*last.owned)
    while instance.reuse():
        u = ((i * 259 + j * 37 + 11 * side) % 97) / 97.0
        w = ((i * 5 + j * 3 + 13 * side) % 31).astype(np.float32) / np.float32(31)
        k = (i * NX + j + side).astype(np.int32)
        v, x, m = np.empty_like(u), np.empty_like(w), np.empty_like(k)
        for step in range(STEPS):
            top = comm.allreduce(u.max(initial=0.0), MPI.MAX)
            out[step % 3].send(u, w, k, timestamp=step)
            into[step % 3].receive(v, x, m)
            t = 0.75 * u + 0.25 * v
            u = 3.9 * t * (1.0 - t) * (1.0 - 0.001 * top)
            r = np.float32(0.75) * w + np.float32(0.25) * x
            w = np.float32(3.9) * r * (np.float32(1) - r)
            k = (31 * k + m) % np.int32(65521)
        last.send(u, w, k, timestamp=STEPS)
