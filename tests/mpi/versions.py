"""Two programs, one of which takes versions of the other's field: `sender CASE` and `receiver CASE`.

Messages on `go` and `done` say how far the other program has come.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable

import numpy as np
import titin

SHAPE = (12, 10)

role, case = sys.argv[1:]
sends = role == "sender"


class Side:
    """One of the two programs, with its part of the array: rows of the sender, columns of the receiver."""

    def __init__(self, instance: titin.Instance) -> None:
        self.instance = instance
        along = 0 if sends else 1
        processes = [1, 1]
        processes[along] = instance.ranks
        numbers = np.arange(float(np.prod(SHAPE))).reshape(SHAPE)
        self.numbers = np.array_split(numbers, instance.ranks, along)[instance.rank]
        self.field = instance.field("u", SHAPE, float, owned=titin.Grid(processes))

    def send(self, times: Iterable[int], step: float | None = None) -> None:
        """Sends a version for each time. The ranks are not in step."""
        for t in times:
            time.sleep(0.001 * ((7 * self.instance.rank + t) % 3))
            self.field.send(self.numbers + 1000 * t, timestamp=float(t), next_timestamp=step and t + step)

    def receive(self, at: float | None = None, timeout: float | None = None) -> float:
        """Receives a version and checks that all its elements are of one version; returns its time."""
        got = np.full_like(self.numbers, -1.0)
        stamps = self.field.receive(got, at=at, timeout=timeout)
        assert stamps is not None
        assert np.array_equal(got, self.numbers + 1000 * stamps.timestamp), (stamps, got)
        return stamps.timestamp

    def rest(self) -> list[float]:
        """Receives until the port is closed; returns the times of the versions."""
        times = []
        while True:
            try:
                times.append(self.receive())
            except titin.PortClosed:
                return times

    def tell(self) -> None:
        self.instance.send("go" if sends else "done", timestamp=0.0)

    def hear(self) -> None:
        self.instance.receive("done" if sends else "go")

    def evicted(self, at: float) -> str:
        try:
            self.receive(at=at)
        except titin.Evicted as error:
            return str(error)
        raise AssertionError(f"there is a version at {at}")

    def late(self, at: float) -> None:
        """Asks for a version that is not known yet, and gets none in time."""
        try:
            self.receive(at=at, timeout=0.01)
        except titin.Timeout:
            return
        raise AssertionError(f"there is a version at {at}")


def latest(side: Side) -> None:
    """The receiver gets the latest version, the same version again if there is no other, and the last version for
    certain."""
    if sends:
        for times in range(5), range(5, 7):
            side.send(times)
            side.tell()
            side.hear()
        side.send([7])
    else:
        for last in 4.0, 6.0:
            side.hear()
            assert [side.receive(), side.receive()] == [last, last]
            side.tell()
        times = side.rest()
        assert times[-1] == 7.0 and set(times) <= {6.0, 7.0}, times


def at(side: Side) -> None:
    """The receiver gets the version of a time as soon as it is known, and an error if the version is not kept."""
    if sends:
        side.send(range(5), step=1.0)
        side.tell()
        side.hear()
        side.send(range(5, 30))
    else:
        side.hear()
        assert [side.receive(at=t) for t in (4.5, 2.5, 3.0)] == [4.0, 2.0, 3.0]
        text = side.evicted(1.0)
        assert "field on port 'u': its version at time 1 is not kept any more, the oldest one is of 2" in text, text
        side.late(7.0)
        assert side.receive(at=2.0) == 2.0, "another question takes the place of the first"
        side.late(8.5)
        side.tell()
        assert side.receive(at=8.5) == 8.0, "it was asked before it was there"
        assert side.rest()[-1] == 29.0


def apart(side: Side) -> None:
    """Each rank asks for another time, which is refused."""
    if sends:
        side.send(range(5), step=1.0)
    else:
        side.receive(at=1.0 + side.instance.rank)


def early(side: Side) -> None:
    """There is no version before the first."""
    if sends:
        side.send(range(3, 5))
    else:
        assert side.receive(at=3.0) == 3.0
        assert "it has no version at time 2.5, the first one is of 3" in side.evicted(2.5)
        assert side.receive() in (3.0, 4.0)


def wait(side: Side) -> None:
    """The sender waits for the receiver, so no version is lost."""
    if sends:
        side.send(range(20))
    else:
        assert [side.receive(at=float(t)) for t in range(20)] == list(range(20))


def withdrawn(side: Side) -> None:
    """The sender gives up all versions."""
    if sends:
        side.send(range(3))
        side.field.withdraw()
        side.field.withdraw()
        try:
            side.send([3])
        except titin.UsageError as error:
            assert "it was withdrawn" in str(error), error
        else:
            raise AssertionError("it was withdrawn")
        side.tell()
    else:
        side.hear()
        assert side.rest() == []
        try:
            side.field.withdraw()
        except titin.UsageError as error:
            assert "its sender withdraws it" in str(error), error
        else:
            raise AssertionError("it is received")


def leaves(side: Side) -> None:
    """The receiver leaves first, and holds up no rank of the sender."""
    if sends:
        side.send(range(40))
    else:
        side.receive()


def waiting(side: Side) -> None:
    """The receiver leaves while the sender waits for room."""
    leaves(side)


def raised(side: Side) -> None:
    """The sender waits for room while the receiver waits for a message of the sender: the sender gets room."""
    if sends:
        side.send(range(5))
        side.tell()
    else:
        side.hear()
        assert [side.receive(at=1.5), side.receive()] == [1.0, 4.0]


def steps(side: Side) -> None:
    """Only some steps of the sender are versions."""
    if sends:
        side.send(range(1, 13))
    else:
        assert [side.receive(at=float(t)) for t in (2, 6, 9)] == [2.0, 5.0, 8.0]
        times = side.rest()
        assert times[-1] == 11.0 and set(times) <= {8.0, 11.0}, times


def last(side: Side) -> None:
    """The description has no more versions, though the sender goes on. A receiver that asks for a later time gets an
    error at once."""
    if sends:
        side.send(range(10), step=1.0)
        side.hear()
    else:
        assert [side.receive(at=t) for t in (3.0, 4.5)] == [3.0, 4.0]
        for _ in range(2):
            try:
                side.receive(at=5.0)
            except titin.PortClosed as error:
                assert "field on port 'u': no version follows the one of time 4, after which the" in str(error), error
            else:
                raise AssertionError("there is a version at 5")
        assert side.receive() == 4.0
        side.tell()
        assert set(side.rest()) <= {4.0}


def plain(side: Side) -> None:
    """A pattern of steps for both ends counts the sender's steps: the receiver takes versions as often as it likes."""
    if sends:
        side.send(range(10))
        side.hear()
    else:
        times = [side.receive() for _ in range(12)]
        assert set(times) <= set(range(5)), times
        side.tell()
        assert set(side.rest()) <= set(range(5))


def patient(side: Side) -> None:
    """A sender without room does not wait for a receiver that waits for a later time."""
    if sends:
        side.send(range(40))
    else:
        assert [side.receive(at=t, timeout=60.0) for t in (10.5, 20.5, 39.0)] == [10.0, 20.0, 39.0]


def ordinary(side: Side) -> None:
    """An ordinary call on the port does not wait: no version comes without a question."""
    if sends:
        side.send(range(3))
    else:
        instance = side.instance
        for call in instance.receive, instance.try_receive, instance.receive_any:
            try:
                call("u")
            except titin.UsageError as error:
                assert "the field on port 'u' is pulled: receive it by the field" in str(error), error
            else:
                raise AssertionError("what is pulled is no message")
        side.rest()


def nothing(side: Side) -> None:
    """The sender never sends."""
    if not sends:
        assert side.rest() == []


def alone(side: Side) -> None:
    """The receiver declares no field, so the only thing left to do is to end."""


comm = None
if "OMPI_COMM_WORLD_SIZE" in os.environ:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
ports = {"o_i": ["u", "go"], "s": ["done"]} if sends else {"o_i": ["done"], "s": ["u", "go"]}
with titin.Instance(**ports, comm=comm) as instance:
    instance.reuse()
    if sends or case != "alone":
        globals()[case](Side(instance))
