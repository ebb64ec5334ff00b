"""Waits for a message that never comes, for titin and for MUSCLE3, and writes when its error arrived.

Arguments: the library ("titin" or "muscle3"), and the stem of the files for the process id and for the time.
"""

import os
import sys
import time
from pathlib import Path


def main() -> None:
    library, stem = sys.argv[1], Path(sys.argv[2])

    def ready() -> None:
        partial = stem.with_suffix(".part")
        partial.write_text(str(os.getpid()))
        partial.rename(stem.with_suffix(".pid"))

    if library == "titin":
        import titin

        instance = titin.Instance(o_i=["out"], s=["in"])
        instance.reuse()
        # Everybody sends before anybody waits: else the ring would be a deadlock of its own.
        instance.send("out", None, timestamp=0.0)
        instance.receive("in")
        ready()
        try:
            # A time-out far away: a ring of waits without one would be told as the deadlock that it is.
            instance.receive("in", timeout=600.0)
        except titin.Error:
            stem.with_suffix(".error").write_text(repr(time.time()))
            raise
    else:
        from libmuscle import Instance, Message
        from ymmsl.v0_2 import Operator, Settings  # noqa: F401

        instance = Instance({Operator.O_I: ["out"], Operator.S: ["in"]})
        instance.reuse_instance()
        instance.send("out", Message(0.0, None, None))
        instance.receive("in")
        ready()
        try:
            instance.receive("in")
        except BaseException:
            stem.with_suffix(".error").write_text(repr(time.time()))
            raise
        stem.with_suffix(".error").write_text(repr(time.time()))


main()
