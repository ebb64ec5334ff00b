"""The calls for snapshots, in a run that asks for none."""

from record import F_INIT, O_F, O_I, Instance, InstanceFlags, Message, S, attempt, main, record


def macro():
    instance = Instance({O_I: ["out"], S: ["back"]}, InstanceFlags.USES_CHECKPOINT_API)
    while instance.reuse_instance():
        record("resuming", instance.resuming())
        attempt("load", instance.load_snapshot, words=3)
        record("init", instance.should_init())
        for step in range(2):
            instance.send("out", Message(step, None, step))
            instance.receive("back")
            record("save", instance.should_save_snapshot(step))
        attempt("save anyway", instance.save_snapshot, Message(0.0), words=1)
        record("final", instance.should_save_final_snapshot())


def micro():
    flags = InstanceFlags.USES_CHECKPOINT_API | InstanceFlags.STATE_NOT_REQUIRED_FOR_NEXT_USE
    instance = Instance({F_INIT: ["in"], O_F: ["final"]}, flags)
    while instance.reuse_instance():
        record("resuming", instance.resuming())
        if instance.should_init():
            message = instance.receive("in")
        instance.send("final", message)
        record("final", instance.should_save_final_snapshot())


if __name__ == "__main__":
    main(globals())
