"""Paths: thousands that are opened and closed leave nothing behind, and messages of gigabytes arrive."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
from titin.path import Path, PathListener

from .conftest import MIB, amount, note

pytestmark = pytest.mark.timeout(3600)

KEY = 32 * "5a"


def left() -> tuple[int, int, int]:
    """The descriptors, the threads and the resident memory of this process."""
    process = psutil.Process()
    return process.num_fds(), process.num_threads(), process.memory_info().rss


def test_paths_that_were_opened_and_closed_leave_nothing() -> None:
    listener = PathListener("127.0.0.1:0", key=KEY)
    count = int(amount("PATHS", 10_000))
    early: tuple[int, int, int] | None = None
    for number in range(count):
        with Path(listener.address, str(number), key=KEY, streams=1 + number % 3) as here:
            there = listener.accept()
            request = there.ireceive()
            here.isend(np.full(number % 1000, number))
            assert there.name == str(number)
            assert request.wait().tolist() == (number % 1000) * [number]
            pending = there.ireceive()
            if number % 2:
                there.close()
            del pending, there
        if number == count // 10:
            early = left()
    assert early
    descriptors, threads, memory = left()
    note(paths=count, growth_mib=round((memory - early[2]) / MIB, 1))
    # A path that has just been closed may not be gone yet.
    assert descriptors <= early[0] + 8
    assert threads <= early[1] + 2
    assert memory < early[2] + 16 * MIB


def test_a_message_of_five_gibibytes_arrives() -> None:
    listener = PathListener("127.0.0.1:0", key=KEY)
    with Path(listener.address, key=KEY, streams=2) as here, listener.accept() as there:
        numbers = np.arange(int(amount("GIB", 5) * 2**30) // 8)
        with ThreadPoolExecutor(1) as executor:
            sending = executor.submit(here.send, numbers)
            found = np.empty_like(numbers)
            there.receive_into(found)
            sending.result()
        assert np.array_equal(found, numbers)
        request = there.isend(numbers)
        here.receive_into(found[::-1])
        request.wait()
        assert np.array_equal(found, numbers[::-1])
        figures = there.statistics()
    assert figures["bytes_sent"] == figures["bytes_received"] == numbers.nbytes
    note(gib=round(numbers.nbytes / 2**30, 1), seconds=round(figures["time"]))


def test_thousands_of_calls_on_many_paths_at_once() -> None:
    """Sends and receives by several threads, with and without waiting."""
    listener = PathListener("127.0.0.1:0", key=KEY)
    rounds, paths = int(amount("ROUNDS", 2000)), 8
    here = [Path(listener.address, str(number), key=KEY) for number in range(paths)]
    there = sorted((listener.accept() for _ in range(paths)), key=lambda path: int(path.name))
    rng = np.random.default_rng(int(amount("SEED", 1)))
    sizes = rng.integers(0, 200_000, (paths, rounds))
    failures: list[BaseException] = []

    def send(number: int) -> None:
        for turn, size in enumerate(sizes[number]):
            data = np.arange(turn, turn + size)
            if turn % 3:
                here[number].isend(data)
            else:
                here[number].send(data)

    def receive(number: int) -> None:
        requests = []
        for turn, size in enumerate(sizes[number]):
            if turn % 5 == 0:
                requests += [(turn, size, there[number].ireceive())]
                continue
            assert np.array_equal(there[number].receive(), np.arange(turn, turn + size)), (number, turn)
        for turn, size, request in requests:
            assert np.array_equal(request.wait(), np.arange(turn, turn + size)), (number, turn)

    def guarded(call, number: int) -> None:
        try:
            call(number)
        except BaseException as failure:
            failures.append(failure)

    threads = [
        threading.Thread(target=guarded, args=(call, number)) for call in (send, receive) for number in range(paths)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    for path in [*here, *there]:
        path.close()
    note(messages=rounds * paths)
