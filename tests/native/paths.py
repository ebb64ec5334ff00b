"""One of the two ends of a path, as paths.c."""

import asyncio
import os
import sys
import time

import ml_dtypes
import numpy as np
import titin
from titin.path import Path, PathListener, wait_any

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
        refused(titin.TypeMismatch, "[100]", lambda: path.receive_into(np.empty(99, dtype=np.uint8)))
        path.barrier()
    else:
        path.send(bytes(100))
        refused(titin.MessageLost, "99", path.barrier)
        path.send(np.zeros(2, dtype=np.int32))
        refused(titin.MessageLost, "int32", path.barrier)
        path.send(bytes(100))
        refused(titin.MessageLost, "99", path.receive)
        path.barrier()


def exchange(path, listens):
    own = np.arange(1000.0) + listens * 1000
    path.send(own)
    assert np.array_equal(path.receive().view(np.float64), np.arange(1000.0) + (not listens) * 1000)
    path.send(own[: 1 if listens else 2].tobytes())
    assert path.receive().nbytes == (16 if listens else 8)


def filled(code, first):
    """Six numbers in two rows. For the types of 16 bits that C does not have, the numbers stand for the bits."""
    numbers = np.arange(first, first + 6).reshape(2, 3)
    if code in ("e", "bfloat16"):
        return numbers.astype(np.uint16).view(np.float16 if code == "e" else ml_dtypes.bfloat16)
    if code in "FD":
        return (numbers - 1j * numbers).astype(code)
    return (numbers % 2 if code == "?" else numbers).astype(code)


def types(path, listens):
    """An exchange of arrays of every type, from and into either order. The last one of each type does not wait."""
    for code in [*"?bhiqBHIQfdFDe", "bfloat16"]:
        for turn in range(4):
            own = np.array(filled(code, 11 if listens else 1), order="F" if turn % 2 else "C")
            expected = filled(code, 1 if listens else 11)
            if turn < 2:
                found = path.exchange(own)
            else:
                found = np.zeros_like(expected, order="F" if turn == 3 else "C")
                receive, send = path.ireceive_into(found), path.isend(own)
                send.wait()
                receive.wait()
            assert found.dtype == expected.dtype and found.shape == (2, 3)
            assert found.tobytes() == expected.tobytes()


def arrays(path, listens):
    """Exchanges of arrays of other kinds: large ones, with strides, and of two types."""
    assert np.array_equal(path.exchange(np.arange(MANY, dtype=float) + listens), np.arange(MANY) + (not listens))
    u = np.zeros((4, 5))
    u[:, 3] = np.arange(4) + 10 * listens
    u[:, 4] = path.exchange(u[:, 3])
    assert np.array_equal(u[:, 4], np.arange(4) + 10 * (not listens))
    whole, real = np.array([7, -8], dtype=np.int32), np.array(2.5, dtype=np.float32)
    found = path.exchange(whole if listens else real)
    expected = real if listens else whole
    assert found.dtype == expected.dtype and np.array_equal(found, expected)
    assert path.exchange(whole).tolist() == [7, -8]
    assert path.exchange(whole).dtype == np.int32


def exchange_misfit(path, listens):
    """Both ends hear of an array that does not fit. An exchange takes any array here: this end sends and receives."""
    both = "expected an array of float64 of shape [2], found int32 of shape [2]"
    shapes = "expected an array of float64 of shape [2], found float64 of shape [3]"
    whole, real, room = np.array([1, 2], dtype=np.int32), np.array([5.0, 6.0]), np.zeros(2)
    if listens:
        refused(titin.TypeMismatch, both, lambda: path.receive_into(room))
        path.barrier()
        for misfit in (both, shapes):
            path.send(real)
            refused(titin.TypeMismatch, misfit, lambda: path.receive_into(room))
            path.barrier()
        return
    path.send(whole)
    refused(titin.MessageLost, both, path.receive)
    path.barrier()
    for array, misfit in ((whole, both), (np.zeros(3), shapes)):
        path.send(array)
        refused(titin.MessageLost, misfit, path.barrier)
        path.receive_into(room)
        assert np.array_equal(room, real)


def parts(path, listens):
    if listens:
        assert bytes(path.receive()) == b"hello"
    else:
        path.send(b"hello")


def requests(path, listens):
    """Both ways at once, while no thread waits."""
    own, others = np.arange(MANY, dtype=float).reshape(2, -1) + listens, np.zeros((2, MANY // 2), order="F")
    both = [path.ireceive_into(others), path.isend(own)]
    while both:
        request = both.pop(wait_any(both))
        assert request.test() and request.wait() is None
    assert np.array_equal(others, np.arange(MANY).reshape(2, -1) + (not listens))
    hundred = path.ireceive()
    path.isend(own[0, :100].view(np.uint8)).wait()
    assert np.array_equal(hundred.wait().view(float), np.arange(100) + (not listens))
    assert path.exchange(own[0, : 1 if listens else 2].view(np.uint8)).nbytes == (16 if listens else 8)

    async def barrier():
        await path.ibarrier()

    asyncio.run(barrier())


def pieces(path, listens):
    """Several places in memory, and a call that is cancelled."""
    if not listens:
        path.isend_parts([b"he", b"llo"])
        path.send_parts([b"h", b"ell", b"", b"o"])
        path.isend(b"hello").wait()
        path.barrier()
        path.send(b"next")
        return
    first, second = bytearray(3), bytearray(5)
    path.ireceive_parts([first, second]).wait()
    assert first + second == b"hello\0\0\0"
    assert path.receive_parts([first, second]) == 5 and first + second == b"hello\0\0\0"
    path.ireceive_into(second).wait()
    assert second == b"hello"
    refused(titin.UsageError, "part 1 has gaps", lambda: path.receive_parts([first, np.empty(6)[::2]]))
    request = path.ireceive()
    assert not request.test()
    refused(titin.Timeout, "longer than 0.01 s", lambda: request.wait(timeout=0.01))
    refused(titin.Timeout, "longer than 0.01 s", lambda: wait_any([request], timeout=0.01))
    assert request.cancel() and not request.cancel()
    refused(titin.Closed, "cancelled", request.wait)
    path.barrier()
    assert bytes(path.receive()) == b"next"


def echo(path, listens):
    """The program that listens sends back what comes."""
    numbers = np.array([5, -6, 7], dtype=np.int32)
    if not listens:
        for _ in range(5):
            path.send(numbers)
            assert np.array_equal(path.receive(), numbers)
            numbers[0] += 1
        path.barrier()
        return
    assert np.array_equal(path.cycle(path), numbers)
    assert path.icycle(path).wait()[0] == 6
    assert path.cycle(path, keep=False) is None

    async def cycle():
        return await path.icycle(path)

    assert asyncio.run(cycle())[0] == 8
    path.icycle(path, keep=False).wait()
    refused(titin.Timeout, "longer than 0.01 s", lambda: path.relay(path, timeout=0.01))
    path.barrier()


def change_streams(path):
    """Large messages by other numbers of streams and in other pieces."""
    for step, count in enumerate([3, 5, 1, 2]):
        path.set_streams(count)
        path.set_piece(1500 * (step + 1))
        assert path.statistics()["piece"] == 1500 * (step + 1)
        until = time.monotonic() + 20
        while path.streams != count and time.monotonic() < until:
            time.sleep(0.001)
        assert path.streams == count
        path.send(np.arange(MANY) + float(step))
        assert (path.receive() == np.arange(MANY) + step).all()
    refused(titin.UsageError, "at most 256", lambda: path.set_streams(257))
    refused(titin.UsageError, "1024 to 1048576", lambda: path.set_piece(1023))
    path.set_streams(0)
    path.set_piece(0)


def end(path, listens):
    # Other ends interrupt a call here.
    refused(titin.Timeout, "longer than 0.01 s", lambda: path.receive(timeout=0.01))
    path.barrier()
    figures = path.statistics()
    assert figures["bytes_sent"] > 2 * 8 * MANY and figures["bytes_received"] > 2 * 8 * MANY
    assert figures["messages_sent"] > 10 and figures["messages_received"] > 10
    assert 0.01 < figures["waited"] < figures["time"] and figures["round_trip"] > 0
    assert figures["send_rate"] > 0 and figures["receive_rate"] > 0 and figures["retransmissions"] >= 0
    assert figures["pacing"] == 4e9
    path.set_pacing(0)
    path.set_buffers(receive=30000)
    changed = path.statistics()
    # Linux doubles the buffer of a socket.
    assert (changed["pacing"], changed["receive_buffer"]) == (0, 30000 if "PATHS_SESSION" in os.environ else 60000)
    assert changed["send_buffer"] == figures["send_buffer"]
    path.flush()
    if listens:
        # What comes goes back, until the other program closes the path.
        path.irelay(path).wait()
        refused(titin.PortClosed, "closed", path.receive)
    else:
        for number in range(20):
            path.send(bytes([number]))
            assert bytes(path.receive()) == bytes([number])
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
    types(path, listens)
    arrays(path, listens)
    exchange_misfit(path, listens)
    parts(path, listens)
    requests(path, listens)
    pieces(path, listens)
    echo(path, listens)
    change_streams(path)
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
        "outage": 30.0,
    }
    converse(Path(place, "mesh", key_file=os.environ["TITIN_PATH_KEY"], **settings), False)
