"""One model after the other, and one sender to several receivers."""

import numpy as np
from record import F_INIT, O_F, Grid, Instance, Message, main, record


def first():
    instance = Instance({O_F: ["state"]})
    while instance.reuse_instance():
        instance.send("state", Message(0.0, None, Grid(np.arange(4.0), ["x"])))


def middle():
    instance = Instance({F_INIT: ["initial"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("initial")
        record("initial", message)
        instance.send("final", Message(1.0, None, Grid(message.data.array**2, message.data.indexes)))


def last():
    instance = Instance({F_INIT: ["a", "b"]})
    uses = 0
    while instance.reuse_instance():
        record("a", instance.receive("a"))
        record("b", instance.receive("b"))
        uses += 1
    record("uses", uses)


if __name__ == "__main__":
    main(globals())
