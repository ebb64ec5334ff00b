"""A long line between machines: each has a network device that leads to it, and packets arrive half a round trip later.

    line.py MILLISECONDS NAME=ADDRESS[:PORT,PORT...] ...

makes a device `to-NAME` for each machine, which whoever starts this moves into the network of the machine. From the
other machines TCP connections can be opened to the named ports alone, as behind a firewall. Needs root.
"""

from __future__ import annotations

import collections
import contextlib
import fcntl
import os
import selectors
import struct
import sys
import time
from ipaddress import ip_address

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000

TCP, SYN, ACK = 6, 0x02, 0x10


class Machine:
    """A machine at the line."""

    def __init__(self, words: str) -> None:
        name, _, place = words.partition("=")
        address, _, ports = place.partition(":")
        self.address = ip_address(address).packed
        self.open_ports = {int(port) for port in ports.split(",") if port}
        self.device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.device, TUNSETIFF, struct.pack("16sH", f"to-{name}".encode(), IFF_TUN | IFF_NO_PI))

    def lets_in(self, packet: bytes) -> bool:
        """Whether the firewall lets a packet of IPv4 pass: all but what opens a connection to a closed port."""
        if packet[9] != TCP:
            return True
        tcp = packet[4 * (packet[0] & 15) :]
        opens = tcp[13] & (SYN | ACK) == SYN
        return not opens or int.from_bytes(tcp[2:4], "big") in self.open_ports


def serve(machines: list[Machine], delay: float) -> None:
    """Passes packets on, each after a delay in seconds. Never returns."""
    by_address = {machine.address: machine for machine in machines}
    ready = selectors.DefaultSelector()
    for machine in machines:
        ready.register(machine.device, selectors.EVENT_READ)
    under_way: collections.deque[tuple[float, int, bytes]] = collections.deque()
    while True:
        for key, _ in ready.select(max(0.0, under_way[0][0] - time.monotonic()) if under_way else None):
            packet = os.read(key.fd, 1 << 16)
            to = by_address.get(packet[16:20]) if packet[0] >> 4 == 4 else None
            if to and to.lets_in(packet):
                under_way.append((time.monotonic() + delay, to.device, packet))
        while under_way and under_way[0][0] <= time.monotonic():
            _, device, packet = under_way.popleft()
            with contextlib.suppress(OSError):  # a device that is down loses packets
                os.write(device, packet)


if __name__ == "__main__":
    serve([Machine(words) for words in sys.argv[2:]], float(sys.argv[1]) / 2000)
