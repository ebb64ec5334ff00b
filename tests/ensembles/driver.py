"""The driver of an ensemble: sends to each member twice, and writes what came back of each to ``results.json``."""

import json
import os

import titin

HOW = json.loads(os.environ["HOW"])
BY = os.environ["BY"]
# The last member that gets a message; all by default.
SENDS = os.environ.get("SENDS")


def failure(error):
    return {"member": error.member, "slot": error.slot, "text": str(error)}


def by_slot(instance, members, step):
    for slot in range(members):
        try:
            yield slot, instance.receive("back", slot=slot).data
        except titin.MemberFailed as error:
            yield slot, failure(error)


def by_any(instance, members, step):
    open_slots = set(range(members)) - lost
    while open_slots:
        try:
            _, slot, message = instance.receive_any("back")
            yield slot, message.data
        except titin.MemberFailed as error:
            slot = error.slot
            lost.add(slot)
            yield slot, failure(error)
        open_slots.discard(slot)


results, lost = [], set()
with titin.Instance(o_i=["out[]"], s=["back[]"]) as instance:
    while instance.reuse():
        members = instance.port("out").slots
        for step in range(2):
            row = [None] * members
            for slot in range(members):
                if SENDS and slot >= int(SENDS) + 1:
                    continue
                how = HOW.get(str(slot), "fine")
                try:
                    instance.send("out", slot, timestamp=step, slot=slot, settings={"how": how})
                except titin.MemberFailed as error:
                    row[slot] = failure(error)
                    assert error.slot == slot, error
            for slot, found in (by_any if BY == "any" else by_slot)(instance, members, step):
                row[slot] = found
            results.append(row)
with open("results.json", "w") as file:
    json.dump(results, file)
