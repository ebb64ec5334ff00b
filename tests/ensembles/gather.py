"""Receives the result of each member, or hears that it has failed."""

import titin

failed = []
with titin.Instance(f_init=["back[]"]) as instance:
    while instance.reuse():
        for slot in range(instance.port("back").slots):
            try:
                instance.receive("back", slot=slot)
            except titin.MemberFailed as error:
                assert error.slot == slot, error
                failed.append(slot)
print("failed:", *failed)
