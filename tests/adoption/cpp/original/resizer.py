"""Sends as many messages as it is told, on a vector port whose length changes with each use."""

import record
from libmuscle import Instance, Message
from ymmsl.v0_2 import Operator

instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["out[]"]})
while instance.reuse_instance():
    message = instance.receive("in")
    length = message.data
    record.line("resizable", instance.is_resizable("out"))
    record.line("before", instance.get_port_length("out"))
    instance.set_port_length("out", length)
    record.line("after", instance.get_port_length("out"))
    for slot in range(length):
        instance.send("out", Message(message.timestamp, None, 10 * length + slot), slot)
