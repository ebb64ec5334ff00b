"""A load balancer that has one worker, and sends it the next member before it has collected the last."""

from balanced import driver, worker  # noqa: F401
from record import F_INIT, O_F, O_I, Instance, InstanceFlags, S, main


def balancer():
    ports = {F_INIT: ["front_in[]"], O_I: ["back_out[]"], S: ["back_in[]"], O_F: ["front_out[]"]}
    instance = Instance(ports, InstanceFlags.DONT_APPLY_OVERLAY)
    while instance.reuse_instance():
        count, workers = instance.get_port_length("front_in"), instance.get_port_length("back_out")
        instance.set_port_length("front_out", count)
        sent = collected = 0
        while collected < count:
            while sent - collected < workers and sent < count:
                instance.send("back_out", instance.receive_with_settings("front_in", sent), sent % workers)
                sent += 1
            message = instance.receive_with_settings("back_in", collected % workers)
            instance.send("front_out", message, collected)
            collected += 1


if __name__ == "__main__":
    main(globals())
