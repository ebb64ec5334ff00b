"""Makes the calls of checkpoints, in their order and out of it."""

from libmuscle import STATE_NOT_REQUIRED_FOR_NEXT_USE, USES_CHECKPOINT_API, Instance, Message
from record import line, refused
from ymmsl.v0_2 import Operator

instance = Instance(
    {Operator.F_INIT: ["in"], Operator.O_F: ["out"]}, USES_CHECKPOINT_API | STATE_NOT_REQUIRED_FOR_NEXT_USE
)
refused("resuming too early", instance.resuming)
uses = 0
while instance.reuse_instance():
    refused("should_init too early", instance.should_init)
    refused("should_save too early", lambda: instance.should_save_snapshot(0.0))
    line("resuming", instance.resuming())
    refused("resuming twice", instance.resuming)
    refused("load", instance.load_snapshot)
    line("should_init", instance.should_init())
    message = instance.receive("in")
    line("in", message)
    line("should_save", instance.should_save_snapshot(message.timestamp))
    refused("save", lambda: instance.save_snapshot(Message(0.0, None, None)))
    refused("reuse too early", instance.reuse_instance)
    instance.send("out", Message(message.timestamp, None, uses))
    uses += 1
    line("should_save_final", instance.should_save_final_snapshot())
    refused("save_final", lambda: instance.save_final_snapshot(Message(0.0, None, None)))
    refused("should_save too late", lambda: instance.should_save_snapshot(0.0))
refused("resuming too late", instance.resuming)
line("uses", uses)
