"""The instance of benchmarks/many.py as a Python program in a process of its own. The program prints the time when it
has begun."""

import time

import titin

with titin.Instance() as instance:
    print(time.time())
    while instance.reuse():
        for operator in ("o_i", "s"):
            for port in instance.ports.values():
                if port.operator == operator == "o_i":
                    instance.send(port, timestamp=0)
                elif port.operator == operator:
                    instance.receive(port)
