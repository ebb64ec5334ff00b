"""The filter that passes the last message of a use alone."""

from record import F_INIT, O_I, Instance, Message, main, record


def source():
    instance = Instance({O_I: ["out"]})
    while instance.reuse_instance():
        for step in range(3):
            instance.send("out", Message(step, step + 1 if step < 2 else None, step))


def watcher():
    instance = Instance({F_INIT: ["in"]})
    while instance.reuse_instance():
        record("in", instance.receive("in"))


if __name__ == "__main__":
    main(globals())
