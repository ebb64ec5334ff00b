"""Two programs that wait for each other."""

from record import O_I, Instance, Message, S, attempt, main


def either():
    instance = Instance({O_I: ["out"], S: ["in"]})
    while instance.reuse_instance():
        attempt("in", instance.receive, "in", words=0)
        raise SystemExit(1)


def left():
    either()


def right():
    either()


if __name__ == "__main__":
    main(globals())
