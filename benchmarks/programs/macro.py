"""The macro side of a pair, for titin and for MUSCLE3: sends on O_I, receives on S, and times it.

Arguments: the library ("titin" or "muscle3"), elements, steps, and the file for the seconds per message.
"""

import sys
import time
from pathlib import Path

import numpy as np


def main() -> None:
    library, elements, steps, result = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    data = np.zeros(elements)
    seconds = 0.0
    if library == "titin":
        import titin

        with titin.Instance(o_i=["out"], s=["in"]) as instance:
            while instance.reuse():
                for step in range(-max(steps // 10, 1), steps):
                    data[:] = step
                    begin = time.perf_counter()
                    instance.send("out", data, timestamp=float(step))
                    message = instance.receive("in")
                    seconds += time.perf_counter() - begin if step >= 0 else 0.0
                    assert elements == 0 or message.data[-1] == step
    else:
        from libmuscle import Instance, Message
        from ymmsl.v0_2 import Operator

        instance = Instance({Operator.O_I: ["out"], Operator.S: ["in"]})
        while instance.reuse_instance():
            for step in range(-max(steps // 10, 1), steps):
                data[:] = step
                begin = time.perf_counter()
                instance.send("out", Message(float(step), None, data))
                message = instance.receive("in")
                seconds += time.perf_counter() - begin if step >= 0 else 0.0
                assert elements == 0 or message.data.array[-1] == step
    result.write_text(repr(seconds / steps / 2))


main()
