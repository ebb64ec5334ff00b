"""A member's answer, with the member's settings, received as if it were the program's own."""

from record import F_INIT, O_F, O_I, Instance, Message, S, attempt, main
from ymmsl import Settings


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        instance.send("out", Message(0.0, None, None, Settings({"k": 2})))
        attempt("back", instance.receive, "back", words=9)
        raise SystemExit(1)


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        instance.receive("in")
        instance.send("final", Message(0.0))


if __name__ == "__main__":
    main(globals())
