"""Ports without a conduit: what is sent is dropped, what is received is the default."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def solo():
    instance = Instance({F_INIT: ["initial"], O_I: ["out"], S: ["in"], O_F: ["final"]})
    uses = 0
    while instance.reuse_instance():
        uses += 1
        default = Message(1.5, 2.5, {"a": 1})
        given = instance.receive("initial", default=default)
        record("the same object", given is default)
        instance.send("out", Message(0.0))
        record("default", instance.receive("in", default=Message(0.0, None, "none")))
        record("with settings", instance.receive_with_settings("in", None, Message(0.0, None, "none")))
        instance.send("final", Message(0.0))
    record("uses", uses)


if __name__ == "__main__":
    main(globals())
