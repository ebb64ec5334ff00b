"""Paths in Python: interruptions, threads, and what is dropped without an end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path as FilePath

import numpy as np
import pytest
import titin
from titin.path import Path, PathListener, wait_any

KEY = "0123456789abcdef" * 4


def pair() -> tuple[Path, Path]:
    """The two ends of a path."""
    listener = PathListener("127.0.0.1:0", key=KEY)
    here = Path(listener.address, "pair", key=KEY)
    return here, listener.accept()


def interrupt_soon() -> None:
    """Interrupts this process as Ctrl-C does, most probably in its next call."""
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_ctrl_c_ends_a_waiting_call_and_the_path_goes_on() -> None:
    here, there = pair()
    with pytest.raises(KeyboardInterrupt):
        interrupt_soon()
        here.receive()
    there.send(b"after")
    assert bytes(here.receive()) == b"after"


def test_ctrl_c_ends_the_wait_for_another_program() -> None:
    listener = PathListener("127.0.0.1:0", key=KEY)
    for wait in (listener.accept, lambda: Path("127.0.0.1:1", key=KEY)):
        with pytest.raises(KeyboardInterrupt):
            interrupt_soon()
            wait()


def test_close_comes_after_the_calls_of_other_threads() -> None:
    here, there = pair()
    received = []
    thread = threading.Thread(target=lambda: received.append(bytes(here.receive())))
    thread.start()
    time.sleep(0.3)
    with pytest.raises(titin.UsageError, match="another thread is in a call"):
        here.close()
    there.send(b"go on")
    thread.join()
    assert received == [b"go on"]


def test_a_dropped_path_delivers_its_messages() -> None:
    here, there = pair()
    many = np.arange(5_000_000, dtype=float)
    sender = threading.Thread(target=lambda: there.receive_into(many))
    sender.start()
    here.send(many + 1)
    del here
    gc.collect()
    sender.join()
    assert many[-1] == 5_000_000
    with pytest.raises(titin.PortClosed):
        there.receive()


def test_messages_that_nobody_has_received_are_an_error_at_the_end() -> None:
    here, there = pair()
    here.send(b"lost")
    there.close()
    with pytest.raises(titin.PortClosed):
        here.close()


def test_an_exception_ends_the_path_at_once() -> None:
    here, there = pair()
    with pytest.raises(ZeroDivisionError), here:
        _ = 1 / 0
    with pytest.raises((titin.PortClosed, titin.PeerLost)):
        there.receive(timeout=20)


def test_what_cannot_be_sent_and_files_that_are_no_keys(tmp_path: FilePath) -> None:
    here, _ = pair()
    for wrong in (["a list", object()], 5, 2.5, "text", None, {"a": 1}, np.array(["text"]), np.zeros(2, "i4,f8")):
        with pytest.raises(titin.TypeMismatch, match="by a path, which carries arrays of numbers and bytes"):
            here.send(wrong)
    with pytest.raises(titin.TypeMismatch, match="a masked array"):
        here.send(np.ma.masked_equal([1, 2], 2))
    with pytest.raises(titin.UsageError, match="timeout"):
        here.receive(timeout=-1)
    with pytest.raises(titin.UsageError, match="no such file"):
        PathListener("127.0.0.1:0", key_file=tmp_path / "nowhere")
    with pytest.raises(titin.UsageError, match="is no address"):
        Path("nowhere", key=KEY)


def test_hundreds_of_calls_are_awaited_at_once() -> None:
    here, there = pair()

    async def converse() -> None:
        receives = [there.ireceive() for _ in range(300)]

        async def received(number: int) -> None:
            data = await receives[number]
            assert data is not None
            assert data.tolist() == number * [number]

        waiting = asyncio.gather(*(received(number) for number in range(300)))
        await asyncio.sleep(0)
        sends = [here.isend(np.full(number, number)) for number in range(300)]
        await waiting
        assert [await send for send in sends] == 300 * [None]
        # A second time, and in another loop: the call is done.
        assert (await receives[7]).tolist() == 7 * [7]  # type: ignore[union-attr]

    asyncio.run(converse())
    asyncio.run(converse())


def test_an_await_that_is_cancelled_cancels_the_call() -> None:
    here, there = pair()

    async def converse() -> None:
        receive, kept = there.ireceive(), there.ireceive()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(_awaited(receive), 0.05)
        with pytest.raises(titin.Closed, match="cancelled"):
            receive.test()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(asyncio.shield(_awaited(kept)), 0.05)
        here.send(b"later")
        data = await kept
        assert data is not None
        assert bytes(data) == b"later"
        # No receive that was cancelled takes a message.
        for number in range(50):
            task = asyncio.create_task(_awaited(there.ireceive()))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            here.send(bytes([number]))
            assert bytes(there.receive()) == bytes([number])
        failing = there.ireceive()
        here.close()
        with pytest.raises(titin.PortClosed):
            await failing

    asyncio.run(converse())


async def _awaited(request: titin.path.Request) -> object:
    return await request


def test_calls_whose_requests_are_dropped() -> None:
    here, there = pair()
    first = there.ireceive()
    # A receive is cancelled, and loses nothing; a send goes on.
    there.ireceive()
    large = np.arange(20_000_000)
    here.isend(large)
    here.isend(b"behind")
    del large
    gc.collect()
    found = first.wait()
    assert found is not None
    assert np.array_equal(found, np.arange(20_000_000))
    assert bytes(there.receive()) == b"behind"


def test_a_request_holds_its_arrays() -> None:
    here, there = pair()
    room = bytearray(5)
    receive = there.ireceive_into(room)
    with pytest.raises(BufferError):
        room.clear()
    here.send(b"hello")
    receive.wait()
    assert room == b"hello"
    del receive
    room.clear()


def test_ctrl_c_ends_a_wait_and_the_call_goes_on() -> None:
    here, there = pair()
    receive = there.ireceive()
    for wait in (receive.wait, lambda: wait_any([receive]), lambda: wait_any([receive, here.ireceive()])):
        with pytest.raises(KeyboardInterrupt):
            interrupt_soon()
            wait()
    here.send(b"after")
    data = receive.wait()
    assert data is not None
    assert bytes(data) == b"after"


def test_a_message_passes_a_program_in_the_middle() -> None:
    (first, middle), (on, last) = pair(), pair()
    with pytest.raises(titin.UsageError, match="no requests"):
        wait_any([])
    relay = middle.irelay(on)
    for size in (0, 5, 3_000_000):
        first.send(np.arange(size))
        assert np.array_equal(last.receive(), np.arange(size))
        last.send(np.arange(size).astype(float))
        assert np.array_equal(first.receive(), np.arange(float(size)))
    first.close()
    relay.wait()
    on.close()
    with pytest.raises(titin.PortClosed):
        last.receive()


@pytest.mark.parametrize("waits", [True, False])
def test_a_program_that_passes_messages_on_hears_of_a_dropped_one(waits: bool) -> None:
    (first, middle), (on, last) = pair(), pair()

    def pass_on() -> None:
        if waits:
            middle.cycle(on)
        else:
            middle.icycle(on).wait()

    first.send(np.arange(3))
    pass_on()
    with pytest.raises(titin.TypeMismatch):
        last.receive_into(np.empty(4))
    # The account comes back beside the next messages.
    told = 0
    for number in range(100):
        first.send(np.array([number]))
        try:
            pass_on()
        except titin.MessageLost as lost:
            assert "message 0" in str(lost)
            told += 1
            pass_on()
        assert last.receive()[0] == number
        time.sleep(0.01)
        if told:
            break
    assert told == 1
    first.flush()


def test_a_ring_posts_all_before_it_waits() -> None:
    # Each message is larger than what a path takes in ahead of its program.
    ends = [pair() for _ in range(3)]
    data = [np.full(9_000_000, float(number)) for number in range(3)]

    def play(number: int) -> list[float]:
        next_, previous = ends[number][0], ends[number - 1][1]
        own = next_.isend(data[number])
        others = [previous.icycle(next_, keep=True), previous.ireceive()]
        own.wait()
        return [float(request.wait().mean()) for request in others]

    with ThreadPoolExecutor(3) as executor:
        assert list(executor.map(play, range(3), timeout=60)) == [[2, 1], [0, 2], [1, 0]]


def test_threads_that_send_without_waiting() -> None:
    here, there = pair()
    failures: list[BaseException] = []

    def send() -> None:
        try:
            for number in range(500):
                here.isend(np.full(1 + number % 1000, number))
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    found = sorted(int(there.receive()[0]) for _ in range(2000))
    for thread in threads:
        thread.join()
    assert not failures
    assert found == sorted(4 * list(range(500)))


def test_two_tasks_await_one_call() -> None:
    here, there = pair()

    async def converse() -> None:
        receive = there.ireceive()
        tasks = [asyncio.create_task(_awaited(receive)) for _ in range(3)]
        await asyncio.sleep(0.05)
        here.send(b"both")
        assert [bytes(data) for data in await asyncio.gather(*tasks)] == 3 * [b"both"]  # type: ignore[call-overload]

    asyncio.run(converse())


def test_an_exchange_ends_with_the_error_of_either_half() -> None:
    here, there = pair()
    with pytest.raises(titin.Timeout):
        here.exchange(b"question", timeout=0.05)
    # The question has arrived, and the answer is for the next call.
    assert bytes(there.receive()) == b"question"
    there.send(b"answer")
    assert bytes(here.receive()) == b"answer"
    # The receiver has dropped an earlier message: nothing was sent, and nothing is awaited for ever.
    here.send(b"large")
    with pytest.raises(titin.TypeMismatch):
        there.receive_into(bytearray(2))
    there.send(b"behind the account")
    # A non-blocking receive does not hear of it.
    assert bytes(here.ireceive().wait()) == b"behind the account"
    with pytest.raises(titin.MessageLost):
        here.exchange(b"question")
    there.send(b"on")
    assert bytes(here.exchange(b"again")) == b"on"
    assert bytes(there.receive()) == b"again"


def test_an_exchange_that_waits_hears_of_a_dropped_message() -> None:
    here, there = pair()
    with ThreadPoolExecutor(1) as executor:
        exchange = executor.submit(here.exchange, np.arange(3))
        with pytest.raises(titin.TypeMismatch):
            there.receive_into(np.empty(2))
        # The other program sends nothing, and perhaps waits for another question.
        with pytest.raises(titin.MessageLost, match="message 0"):
            exchange.result(timeout=20)
    here.send(b"on")
    assert bytes(there.receive()) == b"on"


def test_each_figure_has_its_name() -> None:
    here, there = pair()
    for size in (1, 2, 4):
        here.send(bytes(size))
        there.receive()
    figures = {name: value for name, value in here.statistics().items() if "_sent" in name or "_received" in name}
    assert figures == {"messages_sent": 3, "bytes_sent": 7, "messages_received": 0, "bytes_received": 0}
    there.send(bytes(100))
    here.receive()
    figures = here.statistics()
    assert (figures["messages_received"], figures["bytes_received"]) == (1, 100)
    assert figures["send_rate"] * figures["time"] == pytest.approx(7, rel=0.2)
    assert figures["receive_rate"] * figures["time"] == pytest.approx(100, rel=0.2)


def test_places_that_share_memory_are_refused() -> None:
    here, _there = pair()
    room = np.empty(10, dtype=np.uint8)
    with pytest.raises(titin.UsageError, match="share memory"):
        here.receive_parts([room[:6], room[5:]])
    with pytest.raises(titin.Timeout):
        here.receive_parts([room[5:], room[:5]], timeout=0.0)


def test_a_listener_that_is_closed_frees_its_port() -> None:
    with PathListener("127.0.0.1:0", key=KEY) as listener:
        here = Path(listener.address, key=KEY)
        there = listener.accept()
    with pytest.raises(titin.Closed):
        listener.accept()

    def listen_again() -> PathListener:
        # The port is free in a moment.
        while True:
            try:
                return PathListener(listener.address, key=KEY)
            except titin.ConnectionFailed:
                time.sleep(0.01)

    with listen_again():
        here.send(b"on")
        assert bytes(there.receive()) == b"on"
    listener.close()
