"""A model within a model: the names of its instances, their ports and settings."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record


def outer():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        for step in range(2):
            instance.send("out", Message(step, None, step))
            record("back", instance.receive("back"))


def core():
    instance = Instance({F_INIT: ["in"], O_I: ["ask"], S: ["answer"], O_F: ["final"]})
    while instance.reuse_instance():
        record("settings", [instance.list_settings(), instance.get_setting("k"), instance.get_setting("m")])
        instance.send("ask", instance.receive("in"))
        instance.send("final", instance.receive("answer"))


def helper():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", message)
        instance.send("final", Message(1.0, None, [message.data, instance.get_setting("k")]))


if __name__ == "__main__":
    main(globals())
