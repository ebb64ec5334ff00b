"""One of three programs that exchange fields: `a SENDERS RECEIVERS`, `b ...` and `c ...`. Receivers check all elements.

`a` sends each field of `cases` to `b` and to the serial `c`. `a` and `b` exchange another field in both directions. A
last field goes to and from a program in C, which begins a new use for each step.
"""

from __future__ import annotations

import sys

import numpy as np
import titin

from cases import End, expected, fill, pairs

# More than twice the 61 messages of a conduit after which titin times one in 61.
STEPS, TURNS, USES = 3, 130, 10

name, senders, receivers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
cases = pairs(senders, receivers)
ports = [f"case{number}" for number in range(len(cases))]
comm = None
if name != "c":
    from mpi4py import MPI

    comm = MPI.COMM_WORLD


def ball(end: End, rank: int, turn: int) -> np.ndarray:
    local, inside = end.memory(rank, "f8")
    inside[...] = np.add.outer(*end.owned(rank)) + turn
    return local


def laid_out(local: np.ndarray, turn: int) -> np.ndarray:
    """The array, in ten of 40 turns as a strided copy: calls leave the short way and come back to it."""
    if turn % 40 < 30:
        return local
    strided = np.zeros(tuple(2 * extent for extent in local.shape), local.dtype)[::2, ::2]
    strided[...] = local
    return strided


def play(instance: titin.Instance, mine: End, starts: bool) -> None:
    """A field goes there and back: one side adds 1, the other side checks the result."""
    out, back = mine.declare(instance, "there"), mine.declare(instance, "back")
    for turn in range(TURNS):
        if starts:
            out.send(laid_out(ball(mine, instance.rank, turn), turn), timestamp=float(turn))
        local, inside = mine.memory(instance.rank, "f8")
        # In other turns than the sender.
        received = laid_out(local, turn + 20)
        stamps = back.receive(received)
        assert stamps == (float(turn), None), stamps
        local[...] = received
        if starts:
            assert np.array_equal(local, ball(mine, instance.rank, turn + 1)), (turn, local)
        else:
            inside += 1
            out.send(laid_out(local, turn), timestamp=float(turn))


def use(instance: titin.Instance, mine: End) -> None:
    """The same with a program that begins a new use each time."""
    out, back = mine.declare(instance, "ask"), mine.declare(instance, "answer")
    for turn in range(USES):
        out.send(ball(mine, instance.rank, turn), timestamp=float(turn), next_timestamp=turn + 1.0)
        local, _ = mine.memory(instance.rank, "f8")
        back.receive(local)
        assert np.array_equal(local, ball(mine, instance.rank, turn + 1)), (turn, local)


rows = End((17, 12), (senders, 1), ["even", "even"], halo=((1, 1), (1, 1)))
columns = End((17, 12), (1, receivers), ["even", ("cyclic", 2)], order="F")

if name == "a":
    out = [*ports, "there", "ask"]
    with titin.Instance(o_i=out, s=["back", "answer"], comm=comm) as instance:
        instance.reuse()
        fields = [sender.declare(instance, port) for port, (sender, _, _) in zip(ports, cases, strict=True)]
        for step in range(STEPS):
            for sent, (sender, _, _) in zip(fields, cases, strict=True):
                next_timestamp = step + 1.0 if step + 1 < STEPS else None
                sent.send(*fill(sender, instance.rank, step), timestamp=float(step), next_timestamp=next_timestamp)
        play(instance, rows, True)
        use(instance, rows)
else:
    more = {"o_i": ["there"], "s": [*ports, "back"]} if name == "b" else {"s": ports}
    with titin.Instance(**more, comm=comm) as instance:
        instance.reuse()
        mine = [each[1 if name == "b" else 2] for each in cases]
        fields = [end.declare(instance, port) for port, end in zip(ports, mine, strict=True)]
        for step in range(STEPS):
            for number, (got, (sender, *_), end) in enumerate(zip(fields, cases, mine, strict=True)):
                locals = [end.memory(instance.rank, dtype)[0] for dtype in end.dtypes]
                stamps = got.receive(*locals)
                assert stamps == (float(step), step + 1.0 if step + 1 < STEPS else None), stamps
                for have, want in zip(locals, expected(sender, end, instance.rank, step), strict=True):
                    assert np.array_equal(have, want), (number, step, instance.rank, sender, end, have, want)
        if name == "b":
            play(instance, columns, False)
