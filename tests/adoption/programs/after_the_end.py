"""What a program may ask once its last use is over, and messages on ports that nothing is connected to."""

from record import F_INIT, O_I, Instance, Message, attempt, main


def solo():
    instance = Instance({O_I: ["out[]", "lonely[]", "alone"]})
    while instance.reuse_instance():
        for slot in range(instance.get_port_length("out")):
            instance.send("out", Message(0.0, None, slot), slot)
        # Nobody receives these, so nothing of them is looked at.
        attempt("slot", lambda: instance.send("lonely", Message(0.0), 3))
        attempt("data", lambda: instance.send("alone", Message(0.0, None, object())))
        attempt("resize", lambda: instance.set_port_length("lonely", 3))
    for port in ("out", "lonely", "alone", "none"):
        attempt(f"length of {port}", lambda name=port: instance.get_port_length(name), words=3)
        attempt(f"is {port} connected", lambda name=port: instance.is_connected(name))
    attempt("settings", instance.list_settings)
    attempt("setting", lambda: instance.get_setting("k", "int"))
    attempt("message", lambda: instance.send("alone", Message(0.0)))


def worker():
    instance = Instance({F_INIT: ["in"]})
    while instance.reuse_instance():
        instance.receive("in")


if __name__ == "__main__":
    main(globals())
