"""Sends four numbers."""

import record
from libmuscle import Instance, Message
from ymmsl.v0_2 import Operator

instance = Instance({Operator.O_I: ["out"]})
while instance.reuse_instance():
    for i, number in enumerate([2, 4, 1, 3]):
        instance.send("out", Message(0.5 * (i + 1), None, number))
record.line("sent", 4)
