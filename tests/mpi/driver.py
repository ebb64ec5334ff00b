"""Has each of its peers sum numbers."""

import sys

import numpy as np
import titin

peers = sys.argv[1:]
with titin.Instance(o_i=[f"to_{peer}" for peer in peers], s=[f"from_{peer}" for peer in peers]) as instance:
    instance.reuse()
    for step in range(4):
        for length in (0, 7, 100_000):
            numbers = np.arange(float(length)) + step
            for peer in peers:
                instance.send(f"to_{peer}", numbers, timestamp=float(step))
            for peer in peers:
                total = float(instance.receive(f"from_{peer}").data)
                assert total == numbers.sum(), (peer, step, length, total)
