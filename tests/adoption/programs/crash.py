"""A program that dies of an exception."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        instance.send("out", Message(0.0))
        instance.receive("back")


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        record("in", instance.receive("in"))
        raise ZeroDivisionError("divided by nothing")


if __name__ == "__main__":
    main(globals())
