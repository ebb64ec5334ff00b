"""An array of 8 MB, changed by the sender as soon as it is sent."""

import hashlib

import numpy as np
from record import F_INIT, O_F, O_I, Grid, Instance, Message, S, main, record


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        array = np.arange(1_000_000, dtype=np.float64).reshape(1000, 1000, order="F")
        for step in range(3):
            instance.send("out", Message(step, None, Grid(array, ["column", "row"])))
            array += 0.5
            record("back", instance.receive("back"))


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        array = message.data.array
        record("order", [array.flags.f_contiguous, array.flags.writeable, message.data.indexes])
        instance.send("final", Message(message.timestamp, None, hashlib.sha256(array.tobytes("F")).hexdigest()))


if __name__ == "__main__":
    main(globals())
