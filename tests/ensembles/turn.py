"""A member that sends one result, and notes when its process lived; every fifth fails if failures are allowed."""

import json
import os
import time

import titin

start = time.monotonic()


def note():
    with open("span.json", "w") as file:
        json.dump([start, time.monotonic()], file)


with titin.Instance(o_f=["out"]) as instance:
    number = int(instance.name.removeprefix("member[").removesuffix("]"))
    while instance.reuse():
        if "FAIL" in os.environ and number % 5 == 0:
            note()
            os._exit(4)
        instance.send("out", start, timestamp=0.0)
note()
