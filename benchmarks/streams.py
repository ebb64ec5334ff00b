"""The gain from several streams on one link, on the loopback interface: the experiment of the MPWide paper's figure
2."""

from __future__ import annotations

from benchmarks import native
from benchmarks.harness import Record, compare, stepping, sweep

QUESTION = "Messages exchanged both ways at once over several TCP streams on the loopback interface"
STREAMS = [1, 2, 4, 8, 16, 32, 64, 128]
MEGABYTES = [8, 64, 512]
SIZES = [megabytes * 10**6 for megabytes in MEGABYTES]
EXCHANGES = 2


def titin(streams: int, exchanges: int) -> native.Times:
    """A run of all sizes with this number of streams; gives microseconds for an exchange."""
    program, words = native.build("exchange_titin"), [exchanges, native.RESULT, *SIZES]
    text = stepping([(program, [0, *words]), (program, [1, *words])])
    text += f"titin:\n  medium: {{c0.in: tcp, c1.in: tcp}}\n  links: {{default: {{streams: {streams}}}}}\n"
    return native.coupled(text)


def sockets(count: int, exchanges: int) -> native.Times:
    """A run of all sizes over this number of sockets, with a thread for each."""
    return native.alone(native.rival("exchange_tcp", "threads"), count, exchanges, native.RESULT, *SIZES)


def main(quick: bool) -> list[Record]:
    """Runs every number of streams and of sockets once in every round."""
    rounds, exchanges = (2, 1) if quick else (6, EXCHANGES)
    contenders = {}
    for count in STREAMS:
        contenders[f"{count} streams"] = titin(count, exchanges)
        contenders[f"{count} sockets"] = sockets(count, exchanges)
    figures = sweep(rounds, contenders)
    found = []
    for megabytes, size in zip(MEGABYTES, SIZES):
        for count in STREAMS:
            pairs = list(zip(figures[f"{count} streams"][size], figures[f"{count} sockets"][size]))
            pairs = [(ours / 1000, theirs / 1000) for ours, theirs in pairs]
            name, rival = case(megabytes, count), many(count, "socket")
            found.append(compare(QUESTION, name, pairs, rival=rival, unit="ms", size=size))
    return found


def case(megabytes: int, count: int) -> str:
    """The name of a record."""
    return f"{megabytes} MB, {many(count, 'stream')}"


def many(count: int, what: str) -> str:
    """A number with its noun."""
    return f"{count} {what}{'' if count == 1 else 's'}"
