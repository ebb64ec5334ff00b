"""Two load balancers share one worker among the members of an ensemble, and pass their settings on."""

from record import F_INIT, O_F, O_I, Instance, InstanceFlags, Message, S, main, record
from ymmsl import Settings


def driver():
    instance = Instance({O_I: ["out[]"], S: ["back[]"]})
    while instance.reuse_instance():
        instance.set_port_length("out", 4)
        for slot in range(4):
            message = Message(float(slot), None, slot, Settings({"k": slot, "worker.name": f"for {slot}"}))
            instance.send("out", message, slot)
        for slot in range(4):
            record("back", instance.receive_with_settings("back", slot))


def balancer():
    ports = {F_INIT: ["front_in[]"], O_I: ["back_out[]"], S: ["back_in[]"], O_F: ["front_out[]"]}
    instance = Instance(ports, InstanceFlags.DONT_APPLY_OVERLAY)
    while instance.reuse_instance():
        record("before", instance.list_settings())
        count, workers = instance.get_port_length("front_in"), instance.get_port_length("back_out")
        instance.set_port_length("front_out", count)
        for first in range(0, count, workers):
            slots = range(first, min(first + workers, count))
            for worker, slot in enumerate(slots):
                message = instance.receive_with_settings("front_in", slot)
                record("front", message)
                instance.send("back_out", message, worker)
            for worker, slot in enumerate(slots):
                instance.send("front_out", instance.receive_with_settings("back_in", worker), slot)


def worker():
    instance = Instance({F_INIT: ["in"], O_F: ["out"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", message)
        record("settings", [instance.get_setting("k"), instance.get_setting("name", "str")])
        instance.send("out", Message(message.timestamp, None, [message.data, instance.get_setting("k", "int")]))


if __name__ == "__main__":
    main(globals())
