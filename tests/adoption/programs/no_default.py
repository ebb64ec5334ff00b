"""Receiving without a default on a port without a conduit."""

from record import Instance, S, attempt, main


def solo():
    instance = Instance({S: ["in"]})
    while instance.reuse_instance():
        attempt("receive", instance.receive, "in", words=8)
        break


if __name__ == "__main__":
    main(globals())
