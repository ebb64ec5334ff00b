"""What both ping-pongs of ``lines`` share: the trips, their times, and the processor time of other processes
meanwhile."""

import os
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

#: Bytes of an answer, and of the message that shows the round trip.
ANSWER = 8

#: The most trips of a size, and the seconds after which no further trip of a size begins.
TRIPS, SECONDS = 10, 3.0

#: The trips before the timed ones, for messages up to a size. Larger messages have none.
WARM = {10**6: 3, 64 * 10**6: 1}

#: Sends a message and waits for the answer.
Exchange = Callable[[np.ndarray], None]

#: The bytes of messages by their kind. Half of the numbers of a field are one value, as where an ocean's grid has land.
CONTENTS: dict[str, Callable[[int], np.ndarray]] = {
    "ones": lambda size: np.ones(size, np.uint8),
    "noise": lambda size: np.frombuffer(np.random.default_rng(1).bytes(size), np.uint8).copy(),
    "field": lambda size: _field(size // 8).view(np.uint8),
}


def _field(count: int) -> np.ndarray:
    place = np.arange(count) / 1000
    return np.where(np.sin(place / 7) > 0, 10 + np.sin(place), 0.0)


def processor_time(processes: Sequence[str]) -> float:
    """The seconds of processor time that processes have had, all together. A process may be ``self``."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def play(
    exchange: Exchange,
    sizes: Sequence[int],
    patience: float,
    watched: Sequence[Sequence[str]],
    contents: str = "ones",
) -> list[str]:
    """Times an exchange of each size, after one of 8 B. ``contents`` is the kind of the messages' bytes.

    A line has the size, the median of the seconds from sending to the answer, and the seconds of processor time for an
    exchange of each group of processes that is watched. The first 8 B of a message are its size. No larger size follows
    one with a trip of more seconds than ``patience``.
    """
    data = CONTENTS[contents](max(sizes))
    lines = []
    for size in [ANSWER, *sizes]:
        message = data[:size]
        message[:ANSWER].view(np.int64)[0] = size
        for _ in range(next((trips for largest, trips in WARM.items() if size <= largest), 0)):
            exchange(message)
        times: list[float] = []
        before = [processor_time(group) for group in watched]
        while len(times) < TRIPS and sum(times) < SECONDS:
            begin = time.perf_counter()
            exchange(message)
            times.append(time.perf_counter() - begin)
        used = [(processor_time(group) - earlier) / len(times) for group, earlier in zip(watched, before)]
        lines.append(
            " ".join([str(size), repr(statistics.median(times)), *(f"{seconds:.6f}" for seconds in used)]) + "\n"
        )
        if max(times) > patience:
            break
    return lines


def groups(text: str) -> list[list[str]]:
    """Groups of processes, written ``12,13:self``."""
    return [group.split(",") for group in text.split(":")] if text else []
