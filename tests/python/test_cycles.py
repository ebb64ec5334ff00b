"""Cycles of waits in which one program works. Such cycles are no deadlocks."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
import titin
from titin.model import Model

FILTER = """
import time

def slow(data):
    # Work, which lasts longer than a wait of which the manager hears, and than its search.
    time.sleep(0.6)
    return data
"""


def looped():
    """A model in which all data return to the sender, through a slow filter."""
    model = Model("loop")
    model.component("sender", "sender", o_i="out", s="in")
    model.component("receiver", "receiver", s="in", o_i="out")
    model.conduit("sender.out", "receiver.in", "slow")
    model.conduit("receiver.out", "sender.in")
    model.titin = {"filters": {"slow": {"python": "titin_test_cycles:slow"}}}
    return model


def answers(instance):
    instance.reuse()
    instance.skip_checks("it answers")
    instance.send("out", instance.receive("in").data, timestamp=0)


async def light(instance):
    await instance.reuse()
    instance.skip_checks("it answers")
    await instance.send("out", (await instance.receive("in")).data, timestamp=0)


@pytest.mark.parametrize("receiver", [answers, light])
def test_a_filter_at_work_is_of_no_cycle(stage, monkeypatch, receiver):
    """The message of the filter counts as taken already, while the call that receives the message still waits."""

    def sender(instance):
        instance.reuse()
        # Waits until the manager has heard of the receiver's wait.
        time.sleep(0.8)
        instance.send("out", 1, timestamp=0)
        return instance.receive("in").data

    stage.program("titin_test_cycles", FILTER)
    monkeypatch.syspath_prepend(stage.folder)
    assert stage.play(sender, receiver, looped())["sender"] == 1


def test_a_message_behind_last_that_nobody_has_looked_at_is_of_no_cycle(stage):
    model = Model("chain")
    model.component("driver", "driver", o_i="start", s="result")
    model.component("sender", "sender", f_init="init", o_i="out")
    model.component("receiver", "receiver", f_init="in", o_f="out")
    model.component("other", "other")
    model.conduit("driver.start", "sender.init")
    model.conduit("sender.out", "receiver.in", "last")
    model.conduit("receiver.out", "driver.result")
    busy = threading.Event()

    def driver(instance):
        instance.reuse()
        for number in range(2):
            instance.send("start", number, timestamp=number)
            assert instance.receive("result").data == number

    def sender(instance):
        while instance.reuse():
            message = instance.receive("init")
            busy.wait()
            instance.send("out", message.data, timestamp=message.timestamp)

    async def receiver(instance):
        while await instance.reuse():
            message = await instance.receive("in")
            await instance.send("out", message.data, timestamp=message.timestamp)

    async def other(instance):
        await instance.reuse()
        # Waits until the manager has heard of the receiver's wait.
        await asyncio.sleep(0.8)
        busy.set()
        # Work that blocks all other tasks of this event loop.
        time.sleep(0.6)

    functions = {"driver": driver, "sender": sender, "receiver": receiver, "other": other}
    titin.run(model, functions, run_dir=stage.folder / "run")


@pytest.mark.parametrize("ended", ["before the wait", "during the wait"])
def test_a_port_that_has_ended_hides_no_deadlock(stage, ended):
    """A call that waits for several ports goes on for none of those whose sender has ended."""
    model = Model("ended")
    model.component("brief", "brief", o_i="out")
    model.component("one", "one", s="in", o_i="out")
    model.component("other", "other", s=["brief", "in"], o_i="out")
    model.conduit("brief.out", "other.brief")
    model.conduit("one.out", "other.in")
    model.conduit("other.out", "one.in")

    def brief(instance):
        instance.reuse()
        instance.send("out", 1, timestamp=0)
        if ended == "during the wait":
            time.sleep(0.8)

    def one(instance):
        instance.reuse()
        instance.receive("in")

    def other(instance):
        instance.reuse()
        assert instance.receive_any("brief", "in")[0] == "brief"
        if ended == "before the wait":
            time.sleep(0.3)
        instance.receive_any("brief", "in")

    functions = {"brief": brief, "one": one, "other": other}
    with pytest.raises(titin.Deadlock, match="cycle"):
        titin.run(model, functions, run_dir=stage.folder / "run")
