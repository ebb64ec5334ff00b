"""Paths in Python: interruptions, threads, and what is dropped without an end."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path as FilePath

import numpy as np
import pytest
import titin
from titin.path import Path, PathListener

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
    with pytest.raises(titin.TypeMismatch):
        here.send(["a list", object()])
    with pytest.raises(titin.UsageError, match="timeout"):
        here.receive(timeout=-1)
    with pytest.raises(titin.UsageError, match="no such file"):
        PathListener("127.0.0.1:0", key_file=tmp_path / "nowhere")
    with pytest.raises(titin.UsageError, match="is no address"):
        Path("nowhere", key=KEY)
