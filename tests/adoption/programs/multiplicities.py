"""Instances in two dimensions, paired with others, and called by a vector port for one of them."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def outer():
    instance = Instance({O_I: ["out[]"], S: ["back[]"]})
    while instance.reuse_instance():
        record("lengths", [instance.get_port_length("out"), instance.get_port_length("back")])
        for slot in range(instance.get_port_length("out")):
            instance.send("out", Message(0.0, None, [slot]), slot)
        for slot in range(instance.get_port_length("back")):
            record("back", instance.receive("back", slot))


def inner():
    instance = Instance({F_INIT: ["in"], O_I: ["ask"], S: ["answer"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        instance.send("ask", message)
        instance.send("final", instance.receive("answer"))


def friend():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", message)
        instance.send("final", Message(1.0, None, [*message.data, "friend"]))


if __name__ == "__main__":
    main(globals())
