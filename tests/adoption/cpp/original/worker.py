"""Computes with the settings of its member."""

import record
from libmuscle import Instance, Message
from ymmsl.v0_2 import Operator

instance = Instance({Operator.F_INIT: ["in"], Operator.O_F: ["out"]})
while instance.reuse_instance():
    k = instance.get_setting("k", "float")
    extra = instance.get_setting("extra", "str", default="none")
    message = instance.receive("in")
    record.line("k", k)
    record.line("in", message)
    instance.send("out", Message(message.timestamp, None, {"member": message.data, "square": k * k, "extra": extra}))
