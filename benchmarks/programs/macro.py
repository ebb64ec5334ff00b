"""The macro side of a pair, for titin, MUSCLE3 and mpi4py: sends on O_I, receives on S, and takes the time.

Arguments: how messages are sent ("titin", "titin-loan", "muscle3" or "mpi4py"), the share of the trips that is made (1
for all, 8 for an eighth), the largest message in bytes, and the file for the times. The file has a line "BYTES SECONDS"
for each size, with the seconds of one message, one way.
"""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

#: The least number of trips before the timed trips: memory that is used again has to be allocated first.
WARM = 4

#: Sends an array at a simulated time, and returns the answer.
Exchange = Callable[[object, float], np.ndarray]

#: Gives memory for a number of doubles, to be written and sent.
Lend = Callable[[int], np.ndarray]


def sizes(largest: int) -> Iterator[int]:
    """0 B, and the powers of two from 1 KiB on."""
    yield 0
    size = 1024
    while size <= largest:
        yield size
        size *= 2


def trips_of(size: int, share: int) -> int:
    """The number of timed trips."""
    return max(min(450, (32 << 20) // (size or 1)) // share, 2)


def warm_of(trips: int) -> int:
    """The number of trips before the timed trips."""
    return max(trips // 10, WARM)


def play(exchange: Exchange, share: int, largest: int) -> list[str]:
    """Times all sizes. The payload is rewritten for each trip, outside of the timed part."""
    lines = []
    moment = 0.0
    for size in sizes(largest):
        data = np.zeros(size // 8)
        trips = trips_of(size, share)
        seconds = 0.0
        for trip in range(-warm_of(trips), trips):
            data[:] = trip
            moment += 1.0
            begin = time.perf_counter()
            back = exchange(data, moment)
            seconds += time.perf_counter() - begin if trip >= 0 else 0.0
            assert size == 0 or back[-1] == trip
        lines.append(f"{size} {seconds / trips / 2!r}\n")
    return lines


def play_lent(exchange: Exchange, lend: Lend, share: int, largest: int) -> list[str]:
    """Times all sizes with lent memory on both sides.

    The other side also writes its answer before the timed part, and says when it is ready. The time to lend memory is
    taken here, and counted for both sides.
    """
    lines = []
    moment = 0.0
    for size in sizes(largest):
        trips = trips_of(size, share)
        seconds = 0.0
        for trip in range(-warm_of(trips), trips):
            begin = time.perf_counter()
            data = lend(size // 8)
            lent = time.perf_counter() - begin
            data[:] = trip
            exchange([size // 8, trip], moment)
            moment += 1.0
            begin = time.perf_counter()
            back = exchange(data, moment)
            seconds += time.perf_counter() - begin + 2 * lent if trip >= 0 else 0.0
            assert size == 0 or back[-1] == trip
        lines.append(f"{size} {seconds / trips / 2!r}\n")
    return lines


def with_titin(lends: bool, share: int, largest: int) -> list[str]:
    """The times of titin, with memory of the program, or memory that titin lends."""
    import titin

    lines = []
    with titin.Instance(o_i=["out"], s=["in"]) as instance:
        while instance.reuse():

            def exchange(data: object, moment: float) -> np.ndarray:
                instance.send("out", data, timestamp=moment)
                return instance.receive("in").data

            def lend(count: int) -> np.ndarray:
                return instance.loan("out", count, float)

            lines = play_lent(exchange, lend, share, largest) if lends else play(exchange, share, largest)
    return lines


def with_muscle3(share: int, largest: int) -> list[str]:
    """The times of MUSCLE3."""
    from libmuscle import Instance, Message
    from ymmsl.v0_2 import Operator

    lines = []
    instance = Instance({Operator.O_I: ["out"], Operator.S: ["in"]})
    while instance.reuse_instance():

        def exchange(data: object, moment: float) -> np.ndarray:
            instance.send("out", Message(moment, None, data))
            return instance.receive("in").data.array

        lines = play(exchange, share, largest)
    return lines


def with_mpi4py(share: int, largest: int) -> list[str]:
    """The times of mpi4py between ranks 0 and 1 of one job, with memory that is used again."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    memory = np.zeros(largest // 8)

    def exchange(data: np.ndarray, moment: float) -> np.ndarray:
        back = memory[: data.size]
        world.Send(data, 1)
        world.Recv(back, 1)
        return back

    return play(exchange, share, largest)


def main() -> None:
    library, share, largest, result = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    match library:
        case "muscle3":
            lines = with_muscle3(share, largest)
        case "mpi4py":
            lines = with_mpi4py(share, largest)
        case _:
            lines = with_titin(library == "titin-loan", share, largest)
    result.write_text("".join(lines))


if __name__ == "__main__":
    main()
