"""The cases that must hold on every medium. Each case is a sender and a receiver, run as threads or as processes.

As a program, ``python cases.py CASE ROLE`` plays one of the two roles.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ml_dtypes  # noqa: F401, as NumPy has no bfloat16 without it
import numpy as np
import titin

Role = Callable[[titin.Instance], None]

#: The buffer of the conduits here, in messages and in bytes.
MESSAGES, BYTES = 4, 1 << 20


def the_caller_may_change_its_array_sender(instance: titin.Instance) -> None:
    data = np.zeros(1 << 20)
    for step in range(20):
        data[:] = step
        instance.send("out", data, timestamp=step)
        data[:] = -1.0
    instance.send("other", None, timestamp=20.0)


def the_caller_may_change_its_array_receiver(instance: titin.Instance) -> None:
    for step in range(20):
        assert (instance.receive("in").data == step).all()
    instance.receive("other")


def ten_thousand_views_are_held_sender(instance: titin.Instance) -> None:
    for step in range(10_000):
        instance.send("out", np.full(10, step), timestamp=step)
    instance.send("other", None, timestamp=10_000.0)


def ten_thousand_views_are_held_receiver(instance: titin.Instance) -> None:
    held = [instance.receive("in").data for _ in range(10_000)]
    instance.receive("other")
    assert all((view == step).all() for step, view in enumerate(held))
    assert not held[0].flags.writeable


def a_view_outlives_close_sender(instance: titin.Instance) -> None:
    instance.send("out", np.arange(1 << 18), timestamp=0.0)
    instance.send("other", {"a": np.arange(5), "b": b"bytes"}, timestamp=0.0)


def a_view_outlives_close_receiver(instance: titin.Instance) -> None:
    view = instance.receive("in").data[::2]
    tree = instance.receive("other").data
    instance.close()
    gc.collect()
    assert (view == np.arange(0, 1 << 18, 2)).all()
    assert (tree["a"] == np.arange(5)).all() and tree["b"] == b"bytes"


def a_message_is_larger_than_the_buffer_sender(instance: titin.Instance) -> None:
    for step in range(3):
        instance.send("out", np.full(4 * BYTES, step, dtype=np.uint8), timestamp=step)
    instance.send("other", None, timestamp=3.0)


def a_message_is_larger_than_the_buffer_receiver(instance: titin.Instance) -> None:
    for step in range(3):
        data = instance.receive("in").data
        assert data.shape == (4 * BYTES,) and (data == step).all()
    instance.receive("other")


def a_blocked_conduit_leaves_the_other_free_sender(instance: titin.Instance) -> None:
    sent: list[int] = []

    def fill() -> None:
        # One message more than the buffer holds: the last one waits until the receiver takes a message.
        for step in range(MESSAGES + 1):
            instance.send("out", None, timestamp=step)
            sent.append(step)

    thread = threading.Thread(target=fill)
    thread.start()
    while len(sent) < MESSAGES or not asleep(thread):
        time.sleep(0.001)
    for step in range(10 * MESSAGES):
        # The receiver takes none of the other messages before the last of these has come.
        assert len(sent) == MESSAGES and thread.is_alive()
        instance.send("other", np.full(100, step), timestamp=step)
    thread.join()
    assert len(sent) == MESSAGES + 1


def a_blocked_conduit_leaves_the_other_free_receiver(instance: titin.Instance) -> None:
    for step in range(10 * MESSAGES):
        assert instance.receive("other").data[0] == step
    for step in range(MESSAGES + 1):
        assert instance.receive("in").timestamp == step


def asleep(thread: threading.Thread) -> bool:
    """Whether a thread of this process waits."""
    state = Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "S"


def the_end_of_a_stream_is_port_closed_sender(instance: titin.Instance) -> None:
    instance.send("out", "the last one", timestamp=0.0)
    instance.send("other", None, timestamp=0.0)


def the_end_of_a_stream_is_port_closed_receiver(instance: titin.Instance) -> None:
    instance.receive("other")
    assert instance.receive("in").data == "the last one"
    try:
        instance.receive("in")
    except titin.PortClosed as error:
        assert "sender" in str(error)
    else:
        raise AssertionError("a message after the last one")


def close_waits_for_what_is_unsent_sender(instance: titin.Instance) -> None:
    for step in range(MESSAGES):
        instance.send("out", np.full(BYTES // 64, step), timestamp=step)
    instance.send("other", None, timestamp=0.0)
    # The buffer is full and no message was taken. close() must not lose the messages.


def close_waits_for_what_is_unsent_receiver(instance: titin.Instance) -> None:
    instance.receive("other")
    for step in range(MESSAGES):
        assert (instance.receive("in").data == step).all()


def everything_arrives_as_sent_sender(instance: titin.Instance) -> None:
    for number, value in enumerate(values()):
        instance.send("out", value, timestamp=number)
    instance.send("other", None, timestamp=0.0)


def everything_arrives_as_sent_receiver(instance: titin.Instance) -> None:
    for value in values():
        found = instance.receive("in").data
        if isinstance(value, np.ndarray):
            assert found.dtype == value.dtype and found.shape == value.shape
            assert found.flags.f_contiguous == value.flags.f_contiguous
            assert found.flags.c_contiguous == value.flags.c_contiguous
            assert np.array_equal(found, value)
        else:
            assert found == value, (found, value)
    instance.receive("other")


def values() -> list[object]:
    """A value of each kind."""
    names = (
        "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16"
    )
    arrays: list[object] = [np.arange(24).reshape(2, 3, 4).astype(name) for name in names.split()]
    arrays += [np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(3.5), np.zeros((0, 4)), np.zeros((3, 0, 2))]
    others = [None, True, -5, 2**63, 1.5, "größe", b"\x00\xff", [], {}, {"a": [1, {"b": None}], "c": "d"}]
    return arrays + others


def an_exit_without_close_is_a_failure_sender(instance: titin.Instance) -> None:
    instance.send("out", None, timestamp=0.0)
    os.kill(os.getpid(), signal.SIGKILL)


def an_exit_without_close_is_a_failure_receiver(instance: titin.Instance) -> None:
    instance.receive("in")
    try:
        instance.receive("in")
    except titin.PeerLost as error:
        assert "sender" in str(error)
        raise


def a_view_outlives_its_sender_sender(instance: titin.Instance) -> None:
    instance.send("out", np.arange(1 << 18), timestamp=0.0)
    # The work directories of the two instances are neighbours.
    while not Path("../../receiver/workdir/has_it").exists():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGKILL)


def a_view_outlives_its_sender_receiver(instance: titin.Instance) -> None:
    view = instance.receive("in").data
    Path("has_it").touch()
    try:
        instance.receive("other")
    except titin.PeerLost:
        assert (view == np.arange(1 << 18)).all()
        print("the view holds", flush=True)
        raise


def a_burst_goes_behind_last_sender(instance: titin.Instance) -> None:
    for step in range(100_000):
        following = step + 1.0 if step < 99_999 else None
        instance.send("out", None, timestamp=step, next_timestamp=following)
    instance.send("other", None, timestamp=0.0)


def a_burst_goes_behind_last_receiver(instance: titin.Instance) -> None:
    # The use began when `other` had come, which was sent after the burst.
    instance.receive("other")
    assert instance.receive("in").timestamp == 99_999.0


#: The cases that end well, each with the filter on the conduit from out to in.
CASES = {
    "the_caller_may_change_its_array": "",
    "ten_thousand_views_are_held": "",
    "a_view_outlives_close": "",
    "a_message_is_larger_than_the_buffer": "",
    "a_blocked_conduit_leaves_the_other_free": "",
    "the_end_of_a_stream_is_port_closed": "",
    "close_waits_for_what_is_unsent": "",
    "everything_arrives_as_sent": "",
    "a_burst_goes_behind_last": "last ",
}

#: The cases in which the sender's process dies.
DEATHS = ["an_exit_without_close_is_a_failure", "a_view_outlives_its_sender"]


def ports(case: str, role: str) -> dict[str, list[str]]:
    """The ports of a role. With the filter ``last`` there is one message for the whole of the sender's loop."""
    if case == "a_burst_goes_behind_last":
        return {"o_i": ["out"], "o_f": ["other"]} if role == "sender" else {"f_init": ["in", "other"]}
    return {"o_i": ["out", "other"]} if role == "sender" else {"s": ["in", "other"]}


def play(case: str, role: str, instance: titin.Instance) -> None:
    """Plays a role of a case once."""
    assert instance.reuse()
    globals()[f"{case}_{role}"](instance)
    if case == "a_burst_goes_behind_last":
        assert not instance.reuse()


def main() -> None:
    case, role = sys.argv[1:]
    with titin.Instance(**ports(case, role)) as instance:
        play(case, role, instance)


if __name__ == "__main__":
    main()
