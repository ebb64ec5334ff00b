"""One of the two ends of a path, as paths.c."""

import os
import sys

import numpy as np
import titin
from titin.path import Path, PathListener

MANY = 700000


def refused(kind, text, call):
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")


def give(path):
    path.send(np.array([1, -2, 3], dtype=np.int32))
    wide = np.full((2, 6), -1.0)
    wide[:, ::2] = [[0, 1, 2], [10, 11, 12]]
    path.send(wide[:, ::2])
    path.send(np.array([1 + 2j, 3 + 4j]))
    path.send(np.array([True, False, True]))
    path.send(np.empty(0, dtype=np.int8))
    path.send(np.arange(MANY, dtype=float))


def take(path):
    whole = np.empty(3, dtype=np.int32)
    path.receive_into(whole)
    assert whole.tolist() == [1, -2, 3]
    wide = np.zeros((2, 6))
    path.receive_into(wide[:, ::2])
    assert wide.tolist() == [[0, 0, 1, 0, 2, 0], [10, 0, 11, 0, 12, 0]]
    assert path.receive().tolist() == [1 + 2j, 3 + 4j]
    assert path.receive().tolist() == [True, False, True]
    nothing = path.receive()
    assert nothing.dtype == np.int8 and nothing.shape == (0,)
    many = np.empty(MANY)
    path.receive_into(many)
    assert np.array_equal(many, np.arange(MANY))


def surprise(path, listens):
    numbers = np.arange(4, dtype=np.float32)[:, None] - 2 * np.arange(5, dtype=np.float32)
    if listens:
        found = path.receive()
        assert found.dtype == np.float32 and np.array_equal(found, numbers) and not found.flags.writeable
    else:
        path.send(numbers)


def misfit(path, listens):
    if listens:
        refused(titin.TypeMismatch, "[100]", lambda: path.receive_into(np.empty(99, dtype=np.uint8)))
        path.barrier()
        refused(titin.TypeMismatch, "float64 of shape [2], found int32", lambda: path.receive_into(np.empty(2)))
        path.barrier()
    else:
        path.send(bytes(100))
        refused(titin.MessageLost, "99", path.barrier)
        path.send(np.zeros(2, dtype=np.int32))
        refused(titin.MessageLost, "int32", path.barrier)


def exchange(path, listens):
    own = np.arange(1000.0) + listens * 1000
    path.send(own)
    assert np.array_equal(path.receive().view(np.float64), np.arange(1000.0) + (not listens) * 1000)
    path.send(own[: 1 if listens else 2].tobytes())
    assert path.receive().nbytes == (16 if listens else 8)


def parts(path, listens):
    if listens:
        assert bytes(path.receive()) == b"hello"
    else:
        path.send(b"hello")


def end(path, listens):
    # Other ends interrupt a call here.
    refused(titin.Timeout, "longer than 0.01 s", lambda: path.receive(timeout=0.01))
    path.barrier()
    path.flush()
    if listens:
        refused(titin.PortClosed, "closed", path.receive)
    path.close()
    path.close()
    refused(titin.Closed, "no call follows close()", path.flush)


def converse(path, listens):
    assert path.name == "mesh" and path.streams == 3
    for number in range(2):
        (give if number == listens else take)(path)
    surprise(path, listens)
    misfit(path, listens)
    exchange(path, listens)
    parts(path, listens)
    end(path, listens)


place = sys.argv[1]
if place == "listen":
    listener = PathListener("127.0.0.1:0")
    print(listener.address, flush=True)
    converse(listener.accept(), True)
else:
    refused(titin.UsageError, "64 hexadecimal digits", lambda: Path(place, key="0123"))
    settings = {
        "streams": 3,
        "pacing": 4_000_000_000,
        "send_buffer": 1 << 20,
        "receive_buffer": 1 << 20,
        "patience": 20.0,
    }
    converse(Path(place, "mesh", key_file=os.environ["TITIN_PATH_KEY"], **settings), False)
