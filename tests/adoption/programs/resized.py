"""Vector ports on both ends: the sender says how many slots there are, and changes it."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["out[]"], S: ["back[]"]})
    while instance.reuse_instance():
        record("out", [instance.is_resizable("out"), instance.get_port_length("out")])
        for step, length in enumerate([2, 4, 1]):
            instance.set_port_length("out", length)
            record("length", instance.get_port_length("out"))
            for slot in range(length):
                instance.send("out", Message(step, None, [step, slot]), slot)
            record("back", instance.receive("back", 0))
            record("length of back", instance.get_port_length("back"))
            for slot in range(1, instance.get_port_length("back")):
                record("back", instance.receive("back", slot))


def micro():
    instance = Instance({F_INIT: ["in[]"], O_F: ["final[]"]})
    while instance.reuse_instance():
        length = instance.get_port_length("in")
        record("in", length)
        data = [instance.receive("in", slot).data for slot in range(length)]
        instance.set_port_length("final", 3)
        for slot in range(3):
            instance.send("final", Message(0.0, None, [data, slot]), slot)


if __name__ == "__main__":
    main(globals())
