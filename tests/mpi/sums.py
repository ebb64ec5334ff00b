"""Sums the received numbers over its ranks."""

import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
with titin.Instance(f_init=["numbers"], o_f=["sum"], comm=comm) as instance:
    while instance.reuse():
        message = instance.receive("numbers")
        total = comm.reduce(float(message.data[comm.rank :: comm.size].sum()))
        instance.send("sum", total, timestamp=message.timestamp)
