"""A cell of a ring, for titin and for MUSCLE3. The first cell stops to compute, so all other cells soon wait.

Arguments: the library ("titin" or "muscle3"), and the stem of the names of two files: for the process id, and for the
time at which the error arrived.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path


def go_round(stem: Path, exchange: Callable[[int], None]) -> None:
    """Exchanges once, writes that the ring is closed, and goes on. The first cell is inside its own code from then
    on."""
    exchange(0)
    partial = stem.with_suffix(".part")
    partial.write_text(str(os.getpid()))
    partial.rename(stem.with_suffix(".pid"))
    if stem.name == "0":
        time.sleep(600)
    try:
        for step in range(1, 1_000_000):
            exchange(step)
    finally:
        stem.with_suffix(".error").write_text(repr(time.time()))


def main() -> None:
    library, stem = sys.argv[1], Path(sys.argv[2])
    if library == "titin":
        import titin

        with titin.Instance(o_i=["out"], s=["in"]) as instance:
            instance.reuse()

            def exchange(step: int) -> None:
                instance.send("out", None, timestamp=float(step))
                instance.receive("in")

            go_round(stem, exchange)
    else:
        from libmuscle import Instance, Message
        from ymmsl.v0_2 import Operator

        other = Instance({Operator.O_I: ["out"], Operator.S: ["in"]})
        other.reuse_instance()

        def exchange(step: int) -> None:
            other.send("out", Message(float(step), None, None))
            other.receive("in")

        go_round(stem, exchange)


main()
