"""What an instance can ask of its ports, declared with and without slots, connected and not."""

from record import F_INIT, O_F, O_I, Instance, Message, S, attempt, main, record


def asks(instance, names):
    record("list", instance.list_ports())
    for name in names:
        for call in (
            instance.is_connected,
            instance.is_vector_port,
            instance.is_resizable,
            instance.get_port_length,
        ):
            attempt(f"{call.__name__} {name}", call, name, words=5)
        attempt(f"set_port_length {name}", instance.set_port_length, name, 3, words=4)


def macro():
    instance = Instance({O_I: ["out[]", "free", "free_slots[]"], S: ["back[]"], O_F: ["done"]})
    while instance.reuse_instance():
        asks(instance, ["out", "back", "free", "free_slots", "done"])
        record("free_slots", [instance.is_resizable("free_slots"), instance.get_port_length("free_slots")])
        for slot in range(instance.get_port_length("out")):
            instance.send("out", Message(0.0, None, slot), slot)
        for slot in range(instance.get_port_length("back")):
            record("back", instance.receive("back", slot))


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        asks(instance, ["in", "final"])
        attempt("unknown", instance.is_connected, "none_such", words=1)
        message = instance.receive("in")
        instance.send("final", Message(0.0, None, message.data * 10))


if __name__ == "__main__":
    main(globals())
