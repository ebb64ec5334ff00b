"""A load balancer behind another: settings overlays pass through both."""

from balanced import driver, worker  # noqa: F401
from record import F_INIT, O_F, O_I, Instance, InstanceFlags, S, main, record


def outer():
    """Passes all members on at once."""
    ports = {F_INIT: ["front_in[]"], O_I: ["back_out[]"], S: ["back_in[]"], O_F: ["front_out[]"]}
    instance = Instance(ports, InstanceFlags.DONT_APPLY_OVERLAY)
    while instance.reuse_instance():
        count = instance.get_port_length("front_in")
        for name in ("back_out", "front_out"):
            instance.set_port_length(name, count)
        for slot in range(count):
            instance.send("back_out", instance.receive_with_settings("front_in", slot), slot)
        for slot in range(count):
            message = instance.receive_with_settings("back_in", slot)
            record("back", message)
            instance.send("front_out", message, slot)


def inner():
    from balanced import balancer

    balancer()


if __name__ == "__main__":
    main(globals())
