"""Settings as the data of a message, alone and within other data."""

from record import O_I, Instance, Message, S, echo, main, record
from ymmsl import Settings


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        for data in (Settings({"a": 1, "b.c": [1.5], "d[1].e": "x"}), {"s": [Settings()]}):
            instance.send("out", Message(0.0, None, data))
            record("back", instance.receive("back"))


micro = echo

if __name__ == "__main__":
    main(globals())
