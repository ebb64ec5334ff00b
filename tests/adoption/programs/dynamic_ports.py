"""Programs that take their ports from the description."""

from record import O_I, Instance, Message, S, main, record


def macro():
    instance = Instance()
    while instance.reuse_instance():
        ports = instance.list_ports()
        record("list", {operator.name: sorted(names) for operator, names in ports.items()})
        for name in sorted(ports[O_I]):
            record("connected", [name, instance.is_connected(name), instance.is_vector_port(name)])
            for slot in range(instance.get_port_length(name)) if instance.is_vector_port(name) else [None]:
                instance.send(name, Message(0.0, None, [name, slot]), slot)
        for name in sorted(ports[S]):
            for slot in range(instance.get_port_length(name)) if instance.is_vector_port(name) else [None]:
                record("back", instance.receive(name, slot))


def micro():
    instance = Instance()
    while instance.reuse_instance():
        for names in instance.list_ports().values():
            record("list", sorted(names))
        instance.send("final", instance.receive("in"))


if __name__ == "__main__":
    main(globals())
