"""Two programs that wait for each other."""

from record import O_I, Instance, S, main, record


def either():
    instance = Instance({O_I: ["out"], S: ["in"]})
    while instance.reuse_instance():
        record("waits")
        instance.receive("in")


def left():
    either()


def right():
    either()


if __name__ == "__main__":
    main(globals())
