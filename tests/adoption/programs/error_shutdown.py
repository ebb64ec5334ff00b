"""A program that tells the others why it ends."""

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
        instance.receive("in")
        instance.error_shutdown("the reactor is too hot")
        raise SystemExit(1)


if __name__ == "__main__":
    main(globals())
