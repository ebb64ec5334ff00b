"""Arrays of every type that MUSCLE3 sends, in both orders, strided, named, nested, without elements."""

import numpy as np
from record import O_I, Grid, Instance, Message, S, echo, main, record

TYPES = ["int32", "int64", "float32", "float64", "bool"]


def arrays():
    for name in TYPES:
        whole = np.arange(24).reshape(2, 3, 4).astype(name)
        yield whole
        yield Grid(np.asfortranarray(whole), ["x", "y", "z"])
        yield Grid(whole[:, ::2, 1:3])
        yield whole.T
        yield Grid(whole[0, 0], ["only"])
        yield Grid(np.zeros((3, 0, 2), name))
        yield Grid(np.array(1).astype(name))
        yield {"a": [whole[0], {"b": Grid(whole[1], ["i", "j"])}], "c": whole[1].T}
    yield Grid(np.array([np.nan, -0.0, np.inf, 5e-324]))


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        for number, data in enumerate(arrays()):
            instance.send("out", Message(number, None, data))
            record("back", instance.receive("back"))


micro = echo

if __name__ == "__main__":
    main(globals())
