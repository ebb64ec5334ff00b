"""Passes messages on from a sender on one timeline to a receiver on another.

Ports: each pair ``NAMEdata_in`` (S) and ``NAMEdata_out`` (O_I), NAME possibly empty, is a lane from the sender to the
receiver, and ``clock_in`` (S) tells the receiver's steps. For each step of the receiver, of which the clock tells begin
and end, the bridge receives from the sender as far as it needs, and sends one message on each lane.

Settings:

- ``theta`` (float, 0): which time of the step counts, from 0 for its begin to 1 for its end. The message nearest to it
  is sent on; of two equally near, the later.
- ``strict_causality`` (bool, true): the bridge receives until the sender's next message lies at this time or after.
  Otherwise it receives until a message lies there.
- ``all_in_window`` (bool, false): in place of one message, all from the step's begin to its end are sent, in a list of
  pairs of timestamp and data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from libmuscle import USES_CHECKPOINT_API, Instance, Message

CLOCK = "clock_in"
_IN, _OUT = "data_in", "data_out"


class WrongPorts(RuntimeError):
    """The ports of the component do not make lanes."""


@dataclass
class Sender:
    """What the sender has sent, and may still be needed."""

    lanes: list[str]
    times: list[float] = field(default_factory=list)
    data: list[dict[str, Any]] = field(default_factory=list)
    """The data of each lane, for each of the times."""
    now: float = -math.inf
    next: float | None = -math.inf
    """When the next message comes; None after the last."""

    def receive(self, instance: Instance) -> None:
        """Receives a message on each lane. Raises RuntimeError if their times differ."""
        messages = {lane: instance.receive(lane + _IN) for lane in self.lanes}
        first = messages[self.lanes[0]]
        for lane, message in messages.items():
            for name in ("timestamp", "next_timestamp"):
                ours, theirs = getattr(message, name), getattr(first, name)
                if ours != theirs:
                    raise RuntimeError(
                        f"the {name} on {lane}{_IN} is {ours}, and on {self.lanes[0]}{_IN} {theirs}: messages for a "
                        "bridge are sent at the same times on all of its ports"
                    )
        self.now, self.next = first.timestamp, first.next_timestamp
        self.times.append(first.timestamp)
        self.data.append({lane: message.data for lane, message in messages.items()})

    def forget_before(self, time: float) -> None:
        """Drops all messages before this time but the last."""
        before = sum(1 for sent in self.times if sent < time)
        del self.times[: max(0, before - 1)], self.data[: max(0, before - 1)]

    def within(self, begin: float, end: float) -> dict[str, list[list[Any]]]:
        """The times and data of all messages between these times, for each lane."""
        chosen = [at for at, time in enumerate(self.times) if begin <= time <= end]
        return {lane: [[self.times[at], self.data[at][lane]] for at in chosen] for lane in self.lanes}

    def nearest(self, time: float) -> tuple[float, dict[str, Any]]:
        """The time and the data of the message nearest to a time; this time and None if there is no message."""
        if not self.times:
            return time, dict.fromkeys(self.lanes)
        at = min(range(len(self.times)), key=lambda at: (abs(self.times[at] - time), -at))
        return self.times[at], self.data[at]


def lanes(ports_in: list[str], ports_out: list[str], is_connected: Callable[[str], bool]) -> list[str]:
    """The names of the lanes that these ports make. Raises :class:`WrongPorts` if they do not."""
    if CLOCK not in ports_in or not is_connected(CLOCK):
        raise WrongPorts(f"a bridge needs the S port {CLOCK}, and a conduit to it from an O_I port of the receiver")
    data_in = [name for name in ports_in if name != CLOCK]
    for names, end, operator in ((data_in, _IN, "S"), (ports_out, _OUT, "O_I")):
        wrong = [name for name in names if not name.endswith(end)]
        if wrong:
            raise WrongPorts(f"names of {operator} ports of a bridge end with {end}; found {', '.join(wrong)}")
    from_sender = {name.removesuffix(_IN) for name in data_in}
    to_receiver = {name.removesuffix(_OUT) for name in ports_out}
    if not from_sender | to_receiver:
        raise WrongPorts(f"a bridge needs a pair of ports for data, such as {_IN} (S) and {_OUT} (O_I)")
    missing = [name + _OUT for name in from_sender - to_receiver] + [name + _IN for name in to_receiver - from_sender]
    if missing:
        raise WrongPorts(f"the ports for data of a bridge come in pairs; missing: {', '.join(sorted(missing))}")
    open_ended = [name for name in from_sender if is_connected(name + _OUT) and not is_connected(name + _IN)]
    if open_ended:
        raise WrongPorts(f"no conduit leads to {', '.join(sorted(name + _IN for name in open_ended))}")
    return sorted(to_receiver)


def bridge(instance: Instance) -> None:
    """One use: until the receiver's last step, and the sender's last message."""
    from ymmsl.v0_2 import Operator

    ports = instance.list_ports()
    sender = Sender(lanes(ports.get(Operator.S, []), ports.get(Operator.O_I, []), instance.is_connected))
    theta = instance.get_setting("theta", "float", default=0.0)
    strict = instance.get_setting("strict_causality", "bool", default=True)
    everything = instance.get_setting("all_in_window", "bool", default=False)
    instance.resuming()
    instance.should_init()

    end: float | None = -math.inf
    while end is not None:
        clock = instance.receive(CLOCK)
        begin, end = clock.timestamp, clock.next_timestamp
        until = begin
        if end is not None:
            until = end if everything else (1.0 - theta) * begin + theta * end
        while sender.next is not None and (sender.next if strict else sender.now) < until:
            sender.receive(instance)
        sender.forget_before(begin)

        data: dict[str, Any]
        if everything:
            time, data = begin, sender.within(begin, math.inf if end is None else end)
        else:
            time, data = sender.nearest(until)
        for lane in sender.lanes:
            instance.send(lane + _OUT, Message(time, end, data[lane]))

    while sender.next is not None:
        sender.receive(instance)
    instance.should_save_final_snapshot()


def main() -> None:
    """The program."""
    instance = Instance(flags=USES_CHECKPOINT_API)
    try:
        while instance.reuse_instance():
            bridge(instance)
    except RuntimeError as raised:
        instance.error_shutdown(str(raised))
        raise


if __name__ == "__main__":
    main()
