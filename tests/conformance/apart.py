"""Starts a program apart from the rest of its host, as containers do: ``python apart.py WHAT COMMAND...``.

``network``: in a network namespace of its own, whose loopback leads to the run's manager alone.
``memory``: with a /dev/shm of its own.
``alone``: with a /dev/shm of its own, and without any network, not even a loopback.
``user``: as another user, who may read all files (the run's secret, this Python) and has no other power.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

CLONE_NEWNS, CLONE_NEWNET, SIOCSIFFLAGS = 0x20000, 0x40000000, 0x8914


def main(what: str, *command: str) -> int:
    if what in ("memory", "alone"):
        script = 'mount -t tmpfs none /dev/shm && exec "$@"'
        without = ["--net"] if what == "alone" else []
        return subprocess.call(["unshare", "--mount", *without, "sh", "-c", script, "sh", *command])
    if what == "user":
        reads = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
        nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", *reads]
        return subprocess.call(["setpriv", *nobody, *command])
    connection = json.loads(Path(os.environ["TITIN_MANAGER"]).read_text())
    (port,) = [int(address.rsplit(":", 1)[1]) for address in connection["addresses"] if address.startswith("tcp:127.")]
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        leave(port, theirs)
        os.execvp(command[0], command)
    theirs.close()
    (listener,) = (socket.socket(fileno=fd) for fd in receive(ours))
    threading.Thread(target=forward, args=(listener, port), daemon=True).start()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def leave(port: int, told: socket.socket) -> None:
    """Moves to a network of its own. Hands out a socket that listens there, at the manager's port."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    listener = socket.socket()
    fcntl.ioctl(listener, SIOCSIFFLAGS, struct.pack("16sh14s", b"lo", 1, b""))
    listener.bind(("127.0.0.1", port))
    listener.listen()
    socket.send_fds(told, [b"x"], [listener.fileno()])


def receive(told: socket.socket) -> array.array[int]:
    return array.array("i", socket.recv_fds(told, 1, 1)[1])


def forward(listener: socket.socket, port: int) -> None:
    """Joins every connection with a connection to the manager."""
    while True:
        inner, _ = listener.accept()
        outer = socket.create_connection(("127.0.0.1", port))
        for source, target in ((inner, outer), (outer, inner)):
            threading.Thread(target=copy, args=(source, target), daemon=True).start()


def copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One end is gone, so the run is over or soon will be.
        source.close()
        target.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
