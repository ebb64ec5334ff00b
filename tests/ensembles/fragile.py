"""A member of an ensemble that fails at the second message of its first two processes, in one of several ways."""

import os
import pathlib
import signal

import titin

attempts = pathlib.Path("attempts.txt")
with attempts.open("a") as file:
    file.write("x")
attempt = len(attempts.read_text())

with titin.Instance(f_init=["in"], o_f=["out"]) as instance:
    received = 0
    while instance.reuse():
        message = instance.receive("in")
        received += 1
        if attempt <= 2 and received == 2:
            match instance.setting("how", str):
                case "exit":
                    os._exit(3)
                case "signal":
                    os.kill(os.getpid(), signal.SIGKILL)
                case "raise":
                    raise ValueError("the pressure is negative")
                case "answer and exit":
                    instance.send("out", [message.data, attempt], timestamp=message.timestamp)
                    os._exit(3)
        answer = 2.0 * message.data if "DOUBLES" in os.environ else [message.data, attempt]
        instance.send("out", answer, timestamp=message.timestamp)
