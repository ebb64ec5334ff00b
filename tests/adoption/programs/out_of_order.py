"""Calls that leave the submodel execution loop, with the flag that allows them."""

from libmuscle import SKIP_MMSF_SEQUENCE_CHECKS
from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]}, SKIP_MMSF_SEQUENCE_CHECKS)
    while instance.reuse_instance():
        for step in range(4):
            instance.send("out", Message(step, None, step))
        for _ in range(4):
            record("back", instance.receive("back"))


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]}, SKIP_MMSF_SEQUENCE_CHECKS)
    while instance.reuse_instance():
        instance.send("final", instance.receive("in"))


if __name__ == "__main__":
    main(globals())
