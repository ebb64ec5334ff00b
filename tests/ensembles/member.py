"""A member of an ensemble: doubles what it gets, unless its setting ``how`` says how to fail."""

import os
import pathlib
import signal
import sys

import titin

# Where `CRASHES` is set, so many attempts of a member end before it joins; where `WELL` is set, it does not fail.
attempts = pathlib.Path("attempts.txt")
number = len(attempts.read_text()) if attempts.exists() else 0
with attempts.open("a") as file:
    file.write("x")
if number < int(os.environ.get("CRASHES", "0")):
    sys.exit(9)

with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
    while instance.reuse():
        message = instance.receive("in")
        how = "fine" if "WELL" in os.environ else instance.setting("how", str)
        if message.timestamp > 0:
            how = how.removeprefix("later ")
        match how:
            case "exit":
                os._exit(3)
            case "signal":
                os.kill(os.getpid(), signal.SIGKILL)
            case "raise":
                raise ValueError("the pressure is negative")
            case "hang":
                instance.send("out", "before", timestamp=message.timestamp)
                instance.log_warning("is about to hang")
                os.kill(os.getpid(), signal.SIGSTOP)
        instance.send("out", 2 * message.data, timestamp=message.timestamp)
