"""Writes down what comes to each slot of a component with several instances, or of a vector port of changing length."""

import sys

import record
from libmuscle import Instance
from ymmsl.v0_2 import Operator

vector = sys.argv[1:2] == ["vector"]
instance = Instance({Operator.F_INIT: ["in[]" if vector else "in"]})
while instance.reuse_instance():
    if not vector:
        record.line("in", instance.receive("in"))
        continue
    length = instance.get_port_length("in")
    record.line("length", length)
    for slot in reversed(range(length)):
        record.line(f"slot {slot}", instance.receive("in", slot))
