"""Ranks of which the root alone gets the data of messages: the script of rooted.c."""

import numpy as np
import titin
from mpi4py import MPI

comm = MPI.COMM_WORLD
root = comm.rank == 0
for wrong in ("root", "", 1):
    try:
        titin.Instance(comm=comm, receive=wrong)
    except titin.UsageError as error:
        assert "root_only" in str(error)
    else:
        raise AssertionError(wrong)

with titin.Instance(f_init="ask more", o_f="answer", comm=comm, receive="root_only") as instance:
    use = 0
    while instance.reuse():
        message = instance.receive("ask")
        assert (message.data is None) != root
        assert (message.timestamp, message.next_timestamp, message.settings) == (use, use + 1, {"k": 2.5})
        numbers = np.full(3, -1.0)
        assert instance.receive_into("more", numbers).timestamp == use
        assert numbers[2] == (use if root else -1)
        if root or use == 0:
            instance.send("answer", numbers, timestamp=use)
        use += 1
