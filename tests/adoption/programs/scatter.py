"""A vector port to and from several instances, slots received in any order."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["out[]"], S: ["back[]"]})
    while instance.reuse_instance():
        length = instance.get_port_length("out")
        for step in range(3):
            for slot in range(length):
                instance.send("out", Message(step, step + 1, [step, slot]), slot)
            for slot in reversed(range(length)):
                record("back", instance.receive("back", slot))


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", message)
        message.data = [*message.data, instance.get_setting("me", "int")]
        instance.send("final", message)


if __name__ == "__main__":
    main(globals())
