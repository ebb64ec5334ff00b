"""The flags by name, and an instance with each."""

import libmuscle
from record import Instance, InstanceFlags, main, record

NAMES = ["DONT_APPLY_OVERLAY", "KEEPS_NO_STATE_FOR_NEXT_USE", "STATE_NOT_REQUIRED_FOR_NEXT_USE", "USES_CHECKPOINT_API"]


def solo():
    for name in NAMES:
        flag = getattr(libmuscle, name)
        record(name, [flag.name, flag.value, flag is InstanceFlags[name]])
    record("exported", [name in libmuscle.__all__ for name in [*NAMES, "Grid", "ProfileDatabase", "runner"]])
    instance = Instance({}, libmuscle.KEEPS_NO_STATE_FOR_NEXT_USE | libmuscle.DONT_APPLY_OVERLAY)
    while instance.reuse_instance():
        record("ports", instance.list_ports())


if __name__ == "__main__":
    main(globals())
