"""The micro side of a pair, for titin, MUSCLE3 and mpi4py: receives on F_INIT and sends the same data on O_F.

With "mpi4py" the share and the largest message follow, as `macro.py` has them: both sides know all sizes beforehand.
With "titin-loan" this side answers in memory that titin lends. A message before each answer gives the length of the
answer, and the value of its numbers.
"""

import sys


def main() -> None:
    if sys.argv[1] == "titin":
        import titin

        with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
            while instance.reuse():
                message = instance.receive("in")
                instance.send("out", message.data, timestamp=message.timestamp)
    elif sys.argv[1] == "titin-loan":
        import titin

        with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
            answer = None
            while instance.reuse():
                message = instance.receive("in")
                if isinstance(message.data, list):
                    count, value = message.data
                    answer = instance.loan("out", count, float)
                    answer[:] = value
                    instance.send("out", None, timestamp=message.timestamp)
                else:
                    instance.send("out", answer, timestamp=message.timestamp)
    elif sys.argv[1] == "mpi4py":
        import numpy as np
        from macro import sizes, trips_of, warm_of
        from mpi4py import MPI

        share, largest = map(int, sys.argv[2:])
        memory = np.zeros(largest // 8)
        for size in sizes(largest):
            trips = trips_of(size, share)
            data = memory[: size // 8]
            for _ in range(warm_of(trips) + trips):
                MPI.COMM_WORLD.Recv(data, 0)
                MPI.COMM_WORLD.Send(data, 0)
    else:
        from libmuscle import Instance, Message
        from ymmsl.v0_2 import Operator

        instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["out"]})
        while instance.reuse_instance():
            message = instance.receive("in")
            instance.send("out", Message(message.timestamp, None, message.data))


main()
