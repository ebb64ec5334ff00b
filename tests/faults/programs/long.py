"""Takes part for a long time, or until a file with a given name is in the work directory ("until" FILE)."""

import os
import sys

import titin

until = sys.argv[2] if len(sys.argv) > 2 else None

with titin.Instance(o_i=["out"], s=["in"]) as instance:
    while instance.reuse():
        step = 0
        while not (until and os.path.exists(os.path.basename(until))):
            instance.send("out", [step], timestamp=float(step))
            instance.receive("in")
            step += 1
