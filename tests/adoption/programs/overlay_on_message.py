"""Settings that go with an F_INIT message hold for the use, and go on with what it sends."""

from record import F_INIT, O_F, O_I, Instance, Message, S, main, record
from ymmsl import Settings


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]})
    while instance.reuse_instance():
        for step, settings in enumerate([None, Settings({"k": 2}), Settings(), Settings({"micro.k": 4, "new": 1.5})]):
            instance.send("out", Message(step, None, step, settings))
            record("back", instance.receive_with_settings("back"))


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        record("in", instance.receive("in"))
        record(
            "settings",
            [instance.get_setting("k"), instance.get_setting("new", default=None or 0), instance.list_settings()],
        )
        instance.send("final", Message(0.0))
    record("after", instance.list_settings())


if __name__ == "__main__":
    main(globals())
