"""A program that does not receive all F_INIT messages of a use."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["out", "extra"], S: ["back"]})
    while instance.reuse_instance():
        for step in range(3):
            instance.send("out", Message(step, None, step))
            instance.send("extra", Message(step, None, -step))
            record("back", instance.receive("back"))


def micro():
    instance = Instance({F_INIT: ["in", "extra"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        if message.timestamp == 1.0:
            record("extra", instance.receive("extra"))
        instance.send("final", message)


if __name__ == "__main__":
    main(globals())
