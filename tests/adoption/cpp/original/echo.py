"""Writes down each message, and sends its data back."""

import record
from libmuscle import Instance
from ymmsl.v0_2 import Operator

instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["out"]})
uses = 0
while instance.reuse_instance():
    message = instance.receive("in")
    record.line(f"use {uses}", message)
    uses += 1
    message.next_timestamp = None
    instance.send("out", message)
record.line("uses", uses)
