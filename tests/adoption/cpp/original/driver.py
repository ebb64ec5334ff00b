"""Sends members with their settings to a balancer, and writes down what comes back."""

import record
from libmuscle import DONT_APPLY_OVERLAY, Instance, Message
from ymmsl.v0_2 import Operator, Settings

instance = Instance({Operator.O_I: ["out[]"], Operator.S: ["in[]"]}, DONT_APPLY_OVERLAY)
while instance.reuse_instance():
    for turn in range(3):
        members = 2
        instance.set_port_length("out", members)
        for member in range(members):
            settings = Settings({"k": 0.1 * (10 * turn + member)})
            if member == 1:
                settings["extra"] = "only here"
            instance.send("out", Message(float(turn), None, member, settings), member)
        for member in range(members):
            record.line(f"back {member}", instance.receive_with_settings("in", member))
