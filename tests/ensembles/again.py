"""The driver of an ensemble whose members are started again: sends again what a failed member has not answered."""

import json
import os

import titin

BY = os.environ["BY"]
STEPS = 4


def send(instance, slot, step):
    """Sends to a member. The first error tells that it has failed; the send after it goes to the next attempt."""
    try:
        instance.send("out", [step, slot], timestamp=step, slot=slot, settings={"how": os.environ["HOW"]})
    except titin.MemberFailed as error:
        told.append([error.slot, str(error)])
        instance.send("out", [step, slot], timestamp=step, slot=slot, settings={"how": os.environ["HOW"]})


def receive(instance, open_slots):
    """The slot of the next answer, and the answer; None if the member has failed."""
    slot = min(open_slots)
    try:
        if BY == "any":
            _, slot, message = instance.receive_any("back")
        else:
            message = instance.receive("back", slot=slot)
    except titin.MemberFailed as error:
        told.append([error.slot, str(error)])
        return error.slot, None
    return slot, message.data


answers, told = [], []
with titin.Instance(o_i=["out[]"], s=["back[]"]) as instance:
    while instance.reuse():
        members = instance.port("out").slots
        for step in range(STEPS):
            open_slots = set(range(members))
            for slot in range(members):
                send(instance, slot, step)
            while open_slots:
                slot, answer = receive(instance, open_slots)
                if answer is None:
                    send(instance, slot, step)
                else:
                    open_slots.remove(slot)
                    answers.append([step, slot, answer])
with open("results.json", "w") as file:
    json.dump({"answers": answers, "told": told}, file)
