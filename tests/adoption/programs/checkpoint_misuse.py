"""Calls for snapshots without the flag, and out of order."""

from record import Instance, InstanceFlags, attempt, main, record


def without_flag():
    instance = Instance({})
    while instance.reuse_instance():
        attempt("resuming", instance.resuming, words=4)
        attempt("load", instance.load_snapshot, words=0)
        attempt("init", instance.should_init, words=0)


def out_of_order():
    instance = Instance({}, InstanceFlags.USES_CHECKPOINT_API)
    while True:
        instance.reuse_instance()
        attempt("final", instance.should_save_final_snapshot, words=0)
        attempt("init", instance.should_init, words=0)
        record("resuming", instance.resuming())
        attempt("resuming", instance.resuming, words=5)
        record("init", instance.should_init())
        attempt("load", instance.load_snapshot, words=3)
        attempt("reuse", instance.reuse_instance, words=5)
        record("final", instance.should_save_final_snapshot())
        record("reuse", instance.reuse_instance())
        break


if __name__ == "__main__":
    main(globals())
