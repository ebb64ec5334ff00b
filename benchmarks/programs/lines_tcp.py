"""A ping-pong over one raw TCP stream. Arguments: ``there`` and the address of its port; or ``here``, that address, the
sizes, the patience, the processes that are watched, and the file for the times (see `lines_play.play`)."""

import socket
import sys
import time
from pathlib import Path

import numpy as np
from lines_play import ANSWER, groups, play


def fill(stream: socket.socket, memory: memoryview) -> bool:
    """Reads as many bytes as the memory has; tells whether they came before the end."""
    while memory:
        count = stream.recv_into(memory)
        if count == 0:
            return False
        memory = memory[count:]
    return True


def connect(host: str, port: int) -> socket.socket:
    """A connection to the other side, which may not listen yet."""
    for _ in range(100):
        try:
            return socket.create_connection((host, port))
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise SystemExit(f"nothing listens at {host}:{port}")


def here(address: str, sizes: str, patience: str, watched: str, path: str) -> None:
    """Sends messages and takes the times."""
    host, port = address.rsplit(":", 1)
    answer = memoryview(bytearray(ANSWER))
    with connect(host, int(port)) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def exchange(message: np.ndarray) -> None:
            stream.sendall(message.data)
            if not fill(stream, answer):
                raise SystemExit("the other side is gone")

        lines = play(exchange, [int(size) for size in sizes.split(",")], float(patience), groups(watched))
    Path(path).write_text("".join(lines))


def there(address: str) -> None:
    """Answers messages by eight bytes each, until the connection ends. Memory grows to the largest message."""
    host, port = address.rsplit(":", 1)
    memory = memoryview(bytearray(ANSWER))
    with socket.create_server((host, int(port))) as listener:
        stream, _ = listener.accept()
    with stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = memoryview(bytearray(ANSWER))
        while fill(stream, head):
            rest = int.from_bytes(head, sys.byteorder) - ANSWER
            if rest > len(memory):
                memory = memoryview(bytearray(rest))
            if not fill(stream, memory[:rest]):
                return
            stream.sendall(head)


{"here": here, "there": there}[sys.argv[1]](*sys.argv[2:])
