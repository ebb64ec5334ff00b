"""Passes the messages of members on to workers, each with its settings."""

import record
from libmuscle import DONT_APPLY_OVERLAY, Instance
from ymmsl.v0_2 import Operator

instance = Instance(
    {
        Operator.F_INIT: ["front_in[]"],
        Operator.O_I: ["back_out[]"],
        Operator.S: ["back_in[]"],
        Operator.O_F: ["front_out[]"],
    },
    DONT_APPLY_OVERLAY,
)
while instance.reuse_instance():
    calls = instance.get_port_length("front_in")
    record.line("calls", calls)
    record.line("workers", instance.get_port_length("back_out"))
    instance.set_port_length("front_out", calls)
    for call in range(calls):
        message = instance.receive_with_settings("front_in", call)
        record.line(f"call {call}", message)
        instance.send("back_out", message, call)
    answers = [instance.receive_with_settings("back_in", call) for call in range(calls)]
    for call, answer in enumerate(answers):
        record.line(f"answer {call}", answer)
        instance.send("front_out", answer, call)
