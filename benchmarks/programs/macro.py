"""The macro side of a pair, for titin and for MUSCLE3: sends on O_I, receives on S, and times it.

Arguments: the library ("titin" or "muscle3"), the share of the trips that is made (1: all, 8: an eighth), the largest
message in bytes, and the file for the times: a line "BYTES SECONDS" for each size, seconds for one message, one way.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

#: Sends the array, and returns what comes back.
Exchange = Callable[[np.ndarray, float], np.ndarray]


def sizes(largest: int) -> Iterator[int]:
    """0 B, and 1 KiB and up by powers of two."""
    yield 0
    size = 1024
    while size <= largest:
        yield size
        size *= 2


def play(exchange: Exchange, share: int, largest: int) -> list[str]:
    """Times all sizes. The payload is rewritten each time; that is not timed."""
    lines = []
    moment = 0.0
    for size in sizes(largest):
        data = np.zeros(size // 8)
        trips = max(min(450, (32 << 20) // (size or 1)) // share, 2)
        seconds = 0.0
        for trip in range(-max(trips // 10, 1), trips):
            data[:] = trip
            moment += 1.0
            begin = time.perf_counter()
            back = exchange(data, moment)
            seconds += time.perf_counter() - begin if trip >= 0 else 0.0
            assert size == 0 or back[-1] == trip
        lines.append(f"{size} {seconds / trips / 2!r}\n")
    return lines


def main() -> None:
    library, share, largest, result = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    if library == "titin":
        import titin

        with titin.Instance(o_i=["out"], s=["in"]) as instance:
            while instance.reuse():

                def exchange(data: np.ndarray, moment: float) -> np.ndarray:
                    instance.send("out", data, timestamp=moment)
                    return instance.receive("in").data

                lines = play(exchange, share, largest)
    else:
        from libmuscle import Instance, Message
        from ymmsl.v0_2 import Operator

        other = Instance({Operator.O_I: ["out"], Operator.S: ["in"]})
        while other.reuse_instance():

            def exchange(data: np.ndarray, moment: float) -> np.ndarray:
                other.send("out", Message(moment, None, data))
                return other.receive("in").data.array

            lines = play(exchange, share, largest)
    result.write_text("".join(lines))


main()
