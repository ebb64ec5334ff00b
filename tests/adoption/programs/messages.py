"""What a Message holds, and that a received one can be changed and sent on."""

from record import F_INIT, O_F, O_I, Instance, Message, S, attempt, main, record


def macro():
    record("whole numbers", Message(1, 2))
    record("all", Message(timestamp=1.5, next_timestamp=None, data=[1], settings=None))
    attempt("text", Message, "soon", words=0)
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        message = Message(0.25)
        for step in range(3):
            instance.send("out", message)
            message = instance.receive("back")
            record("back", message)
            message.data = (message.data or 0) + 1
            message.timestamp += 1.0
            message.next_timestamp = step + 5


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", message)
        message.data = (message.data or 0) * 2
        instance.send("final", message)


if __name__ == "__main__":
    main(globals())
