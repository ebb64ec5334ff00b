"""Calls that are wrong: each function makes one, in an instance of its own, and records what is raised."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "programs"))

import numpy as np
from record import F_INIT, O_F, O_I, Grid, Instance, Message, S, attempt, main

ALL = {F_INIT: ["initial"], O_I: ["out", "many_out[]"], S: ["in", "many_in[]"], O_F: ["final"]}
WORDS = 4


def use(what, call):
    """One use of an instance with all ports, in which the call is made."""
    instance = Instance(ALL)
    while instance.reuse_instance():
        attempt(what, lambda: call(instance), words=WORDS)
        break


def unknown_port_sent_on():
    use("send", lambda instance: instance.send("none", Message(0.0)))


def unknown_port_received_on():
    use("receive", lambda instance: instance.receive("none", default=Message(0.0)))


def sending_on_a_receiving_port():
    use("send", lambda instance: instance.send("in", Message(0.0)))


def receiving_on_a_sending_port():
    use("receive", lambda instance: instance.receive("out", default=Message(0.0)))


def vector_port_without_slot():
    use("send", lambda instance: instance.send("many_out", Message(0.0)))


def slot_on_a_port_without_slots():
    use("receive", lambda instance: instance.receive("in", 0, Message(0.0)))


def nothing_connected_and_no_default():
    use("receive", lambda instance: instance.receive("in"))


def unknown_setting():
    use("setting", lambda instance: instance.get_setting("none"))


def unknown_type_of_setting():
    use("setting", lambda instance: instance.get_setting("k", "complex"))


def whole_number_as_float():
    use("setting", lambda instance: instance.get_setting("k", "float"))


def length_of_a_port_without_slots():
    use("length", lambda instance: instance.get_port_length("in"))


def resizing_a_port_without_slots():
    use("resize", lambda instance: instance.set_port_length("out", 2))


def too_few_names_of_indices():
    use("grid", lambda instance: Grid(np.zeros((2, 2)), ["x"]))


def snapshot_without_flag():
    use("resuming", lambda instance: instance.resuming())


if __name__ == "__main__":
    main(globals())
