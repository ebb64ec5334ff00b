"""A driver gives each member of an ensemble its settings by muscle_settings_in; they hold for what members call."""

from record import F_INIT, O_F, O_I, Instance, InstanceFlags, Message, S, main, record
from ymmsl import Settings


def driver():
    instance = Instance({O_I: ["settings_out[]"], S: ["results[]"]}, InstanceFlags.DONT_APPLY_OVERLAY)
    while instance.reuse_instance():
        for round in range(2):
            for slot in range(instance.get_port_length("settings_out")):
                settings = Settings({"k": 10.0 * slot + round, "macro.name": f"member {slot}"})
                instance.send("settings_out", Message(round, None, settings), slot)
            for slot in range(instance.get_port_length("results")):
                record("result", instance.receive_with_settings("results", slot))


def macro():
    instance = Instance({O_I: ["out"], S: ["back"], O_F: ["result"]})
    while instance.reuse_instance():
        record("settings", [instance.get_setting("k"), instance.get_setting("name"), instance.list_settings()])
        for step in range(2):
            instance.send("out", Message(step, None, step))
            message = instance.receive_with_settings("back")
            record("back", message)
        instance.send("result", Message(2.0, None, instance.get_setting("k", "float")))


def micro():
    instance = Instance({F_INIT: ["in"], O_F: ["final"]})
    while instance.reuse_instance():
        message = instance.receive("in")
        record("in", [message, instance.get_setting("k"), instance.get_setting("other", default="none")])
        instance.send("final", Message(message.timestamp, None, instance.get_setting("k")))


if __name__ == "__main__":
    main(globals())
