"""Sends settings to the probe, and a message for each of its uses."""

import record
from libmuscle import Instance, Message
from ymmsl.v0_2 import Operator, Settings

instance = Instance({Operator.O_I: ["settings", "out"], Operator.S: ["done"]})
while instance.reuse_instance():
    for use in range(2):
        settings = Settings({"float": 10.5 + use, "late": "came late", "probe.own": [use, 2]})
        if use == 1:
            settings["ints"] = [0.5, 1.5]
        instance.send("settings", Message(float(use), None, settings))
        instance.send("out", Message(float(use), None, use, settings))
        record.line("done", instance.receive_with_settings("done"))
