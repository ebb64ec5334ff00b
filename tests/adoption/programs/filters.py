"""Filters on conduits: a message repeated in each use, and one in the first use with nil after."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def start():
    instance = Instance({O_F: ["mesh"]})
    while instance.reuse_instance():
        instance.send("mesh", Message(0.0, None, [1, 2, 3]))


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        for step in range(3):
            instance.send("out", Message(step, step + 1 if step < 2 else None, step))
            record("back", instance.receive("back"))


def micro():
    instance = Instance({F_INIT: ["in", "mesh", "event"], O_F: ["final"]})
    while instance.reuse_instance():
        for name in ("in", "mesh", "event"):
            record(name, instance.receive(name))
        instance.send("final", Message(0.0, None, "done"))


if __name__ == "__main__":
    main(globals())
