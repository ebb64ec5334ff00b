"""A program that leaves in the middle of its use, with exit code 0."""

from record import F_INIT, O_F, O_I, Instance, Message, S, attempt, main


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        instance.send("out", Message(0.0))
        attempt("back", instance.receive, "back", words=0)
        raise SystemExit(1)


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        raise SystemExit(0)


if __name__ == "__main__":
    main(globals())
