"""Instances of asyncio: the same results as with waiting instances, on one thread."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import partial

import numpy as np
import pytest
import titin
import titin.aio
from titin.model import Model

from .conftest import pair


async def sends(instance):
    """Sends far more than the conduit holds."""
    assert await instance.reuse()
    for number in range(200):
        await instance.send("out", np.full(3, number), timestamp=number)
    assert not await instance.reuse()


async def receives(instance):
    total = 0
    assert await instance.reuse()
    while True:
        try:
            message = await instance.receive("in")
        except titin.PortClosed:
            break
        assert message.timestamp == message.data[2]
        total += int(message.data[0])
    return total


def test_more_than_fits_is_sent_and_received(stage):
    assert stage.play(sends, receives)["receiver"] == sum(range(200))


def test_one_side_may_wait_on_a_thread_of_its_own(stage):
    def waits(instance):
        instance.reuse()
        numbers = []
        try:
            while True:
                numbers.append(int(instance.receive("in").data[0]))
        except titin.PortClosed:
            return numbers

    assert stage.play(sends, waits)["receiver"] == list(range(200))


def test_hundreds_on_one_thread(stage):
    model = Model("ring")
    count = 300
    for number in range(count):
        model.component(f"n{number}", f"n{number}", o_i="out", s="in")
    for number in range(count):
        model.conduit(f"n{number}.out", f"n{(number + 1) % count}.in")
    threads = set()

    async def cell(instance):
        threads.add(threading.get_ident())
        first = instance.name == "n0"
        assert await instance.reuse()
        for turn in range(3):
            if first:
                await instance.send("out", turn, timestamp=turn)
            message = await instance.receive("in")
            if not first:
                await instance.send("out", message.data, timestamp=turn)
        return message.data

    done = titin.run(model, {f"n{number}": cell for number in range(count)}, run_dir=stage.folder / "run")
    assert set(done.returned.values()) == {2}
    assert len(threads) == 1


def test_settings_and_what_else_an_instance_knows(stage):
    model = pair()
    model.settings["dt"] = "10 ms"

    async def knows(instance):
        await instance.reuse()
        assert instance.setting("dt", "s") == 0.01
        assert instance.setting("nothing", default=3) == 3
        assert instance.name == "sender"
        assert set(instance.ports) == {"out", "spare"}
        assert instance.port("out").connected
        assert instance.overlay == {}
        assert "dt" in instance.settings
        assert instance.scale.dt is None
        with instance.region("all"):
            instance.log("info", "all is known")
        await instance.send("out", settings={"k": 2}, timestamp=0)

    async def receives(instance):
        await instance.reuse()
        into = np.zeros(0)
        with pytest.raises(titin.TypeMismatch):
            await instance.receive_into("in", into)
        assert (await instance.receive("in")).data is None
        assert (await instance.receive("other", default=7)).data == 7

    stage.play(knows, receives, model)
    assert "all is known" in (stage.folder / "run/titin_manager.log").read_text()


def test_a_timeout_lets_the_instance_go_on(stage):
    async def later(instance):
        await instance.reuse()
        await asyncio.get_running_loop().run_in_executor(None, opened.wait)
        await instance.send("out", 1, timestamp=0)

    async def impatient(instance):
        await instance.reuse()
        with pytest.raises(titin.Timeout, match="'in'"):
            await instance.receive("in", timeout=0.02)
        assert instance.try_receive("in") is None
        opened.set()
        name, slot, message = await instance.receive_any("in")
        return name, slot, message.data

    opened = threading.Event()
    assert stage.play(later, impatient)["receiver"] == ("in", None, 1)


def test_several_tasks_of_one_instance(stage):
    model = Model("pair")
    model.component("sender", "sender", o_i="a b")
    model.component("receiver", "receiver", s="a b")
    model.conduit("sender.a", "receiver.a")
    model.conduit("sender.b", "receiver.b")

    async def sender(instance):
        await instance.reuse()
        await asyncio.gather(*(instance.send(port, port, timestamp=0) for port in "ba"))

    async def receiver(instance):
        await instance.reuse()
        messages = await asyncio.gather(*(instance.receive(port) for port in "ab"))
        return [message.data for message in messages]

    assert stage.play(sender, receiver, model)["receiver"] == ["a", "b"]


@pytest.mark.parametrize("ports", [("in", "other"), (["in", "other"],), (("in", "other"),)])
def test_any_of_several_ports_one_by_one_or_in_a_list(stage, ports):
    async def sender(instance):
        await instance.reuse()
        await go.wait()
        await instance.send("out", 1, timestamp=0)

    async def receiver(instance):
        await instance.reuse()
        task = asyncio.create_task(instance.receive_any(*ports))
        await asyncio.sleep(0)
        with pytest.raises(titin.UsageError, match="two calls at once on port 'in'"):
            await instance.receive("in")
        go.set()
        name, slot, message = await task
        for wrong in (3, [3], None):
            with pytest.raises(TypeError, match="a port is given by its name"):
                await instance.receive_any(wrong)
        with pytest.raises(TypeError, match=r"a port is given by its name .*; found \['in'\]"):
            await instance.receive(["in"])
        with pytest.raises(titin.PortClosed):
            await instance.receive_any(*ports)
        return name, slot, message.data

    go = asyncio.Event()
    model = pair()
    model.conduit("sender.spare", "receiver.other")
    assert stage.play(sender, receiver, model)["receiver"] == ("in", None, 1)


@pytest.mark.parametrize("second", ["receive", "receive_into", "receive_any", "try_receive"])
def test_a_second_call_on_a_port_is_refused_as_between_threads(stage, second):
    go = asyncio.Event()

    async def receives_two(instance):
        await instance.reuse()
        task = asyncio.create_task(instance.receive("in"))
        await asyncio.sleep(0)
        with pytest.raises(titin.UsageError, match="two calls at once on port 'in'"):
            made = getattr(instance, second)("in", *[np.zeros(1)] * (second == "receive_into"))
            if second != "try_receive":
                await made
        await cancelled_task(task)
        go.set()
        return (await instance.receive("in")).data

    assert stage.play(partial(sends_when, go), receives_two)["receiver"] == 1


def test_a_second_call_beside_reuse_is_refused(stage):
    model = Model("pair")
    model.component("sender", "sender", o_f="out")
    model.component("receiver", "receiver", f_init="in")
    model.conduit("sender.out", "receiver.in")
    go = asyncio.Event()

    async def begins(instance):
        task = asyncio.create_task(instance.reuse())
        await asyncio.sleep(0)
        with pytest.raises(titin.UsageError, match=r"two calls of reuse\(\) at once"):
            await instance.reuse()
        with pytest.raises(titin.UsageError, match="two calls at once on port 'in'"):
            await instance.receive("in")
        go.set()
        assert await task
        return (await instance.receive("in")).data

    assert stage.play(partial(sends_when, go), begins, model)["receiver"] == 1


def test_tasks_may_be_on_several_slots_of_a_port(stage):
    model = Model("pair")
    model.component("sender", "sender", o_i="out")
    model.component("receiver", "receiver", s="in", multiplicity=3)
    model.conduit("sender.out", "receiver.in")

    async def sender(instance):
        await instance.reuse()

        async def sends_all(slot):
            for number in range(200):
                await instance.send("out", slot, timestamp=number, slot=slot)

        await asyncio.gather(*map(sends_all, range(3)))

    async def receiver(instance):
        await instance.reuse()
        return {(await instance.receive("in")).data for _ in range(200)}

    returned = stage.play(sender, receiver, model)
    assert [returned[f"receiver[{slot}]"] for slot in range(3)] == [{0}, {1}, {2}]


def test_a_cancelled_send_leaves_its_port_unusable(stage):
    model = pair()
    full = asyncio.Event()

    async def sender(instance):
        await instance.reuse()

        async def floods():
            for number in range(1000):
                if number == 64:
                    full.set()
                await instance.send("out", number, timestamp=number)

        task = asyncio.create_task(floods())
        await full.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(titin.UsageError, match="cancelled halfway"):
            await instance.send("out", 0, timestamp=2000)

    async def receiver(instance):
        await instance.reuse()
        await full.wait()
        await asyncio.sleep(0)
        count = 0
        try:
            while True:
                await instance.receive("in")
                count += 1
        except titin.PortClosed:
            return count

    assert stage.play(sender, receiver, model)["receiver"] >= 64


async def sends_when(go, instance):
    await instance.reuse()
    await go.wait()
    await instance.send("out", 1, timestamp=0)


async def cancelled(awaited):
    """Cancels a pending call."""
    task = asyncio.create_task(awaited)
    await asyncio.sleep(0)
    await cancelled_task(task)


async def cancelled_task(task):
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancelled_call_does_not_bound_the_next_one(stage):
    go = asyncio.Event()

    async def receives_one(instance):
        await instance.reuse()
        for call in (instance.receive, instance.receive_any):
            await cancelled(call("in", timeout=0.001))
        await asyncio.sleep(0.002)
        task = asyncio.create_task(instance.receive("in"))
        await asyncio.sleep(0)
        go.set()
        return (await task).data

    assert stage.play(partial(sends_when, go), receives_one)["receiver"] == 1


def test_a_cancelled_call_does_not_unbound_the_next_one(stage):
    go = asyncio.Event()

    async def receives_one(instance):
        await instance.reuse()
        for call in (instance.receive, instance.receive_any):
            await cancelled(call("in"))
            with pytest.raises(titin.Timeout):
                await instance.receive("in", timeout=0.001)
        await cancelled(instance.receive_into("in", np.zeros(1)))
        with pytest.raises(titin.Timeout):
            await instance.receive("in", timeout=0.001)
        go.set()
        return (await instance.receive("in")).data

    assert stage.play(partial(sends_when, go), receives_one)["receiver"] == 1


def test_a_cancelled_call_is_of_no_cycle(stage):
    """The manager has heard of the call, and hears that the call is over."""
    model = Model("cycle")
    model.component("sender", "sender", o_i="out", s="in")
    model.component("receiver", "receiver", o_i="out", s="in")
    model.conduit("sender.out", "receiver.in")
    model.conduit("receiver.out", "sender.in")
    cut = asyncio.Event()

    async def impatient(instance):
        await instance.reuse()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(instance.receive("in"), 0.5)
        cut.set()
        # By then the manager has heard of the other instance's wait, and has probed both.
        await asyncio.sleep(1)
        await instance.send("out", 1, timestamp=0)
        return (await instance.receive("in")).data

    async def answers(instance):
        await instance.reuse()
        await cut.wait()
        message = await instance.receive("in")
        await instance.send("out", message.data + 1, timestamp=0)

    assert stage.play(impatient, answers, model)["sender"] == 2


def test_a_call_that_is_cancelled_after_the_end(stage):
    go = asyncio.Event()

    async def breaks():
        try:
            async with titin.aio.Instance() as instance:
                await instance.reuse()
                task = asyncio.create_task(instance.receive("in"))
                await asyncio.sleep(0)
                raise ValueError("seven is not eight")
        except ValueError:
            await cancelled_task(task)
            raise
        finally:
            go.set()

    raised, _ = stage.fails(partial(sends_when, go), breaks)
    assert isinstance(raised, ValueError)


def test_a_cancelled_opening_fails_the_run(stage):
    over = asyncio.Event()

    async def gives_up():
        instance = titin.aio.Instance()
        await cancelled(instance.open())
        # No other task awaits the task that holds the instance.
        await over.wait()

    async def loses(instance):
        try:
            await instance.reuse()
            await instance.receive("in")
        finally:
            over.set()

    raised, log = stage.fails(gives_up, loses)
    assert "let go of the instance before it had joined the run" in str(raised) + log


def test_a_cycle_of_awaited_calls_is_a_deadlock(stage):
    model = Model("cycle")
    model.component("sender", "sender", o_i="out", s="in")
    model.component("receiver", "receiver", o_i="out", s="in")
    model.conduit("sender.out", "receiver.in")
    model.conduit("receiver.out", "sender.in")

    async def waits(instance):
        await instance.reuse()
        await instance.receive("in")

    raised, log = stage.fails(waits, waits, model)
    assert isinstance(raised, titin.Deadlock)
    assert "sender" in str(raised)
    assert "waits to receive" in log


def looped():
    """A model in which all data return to the sender."""
    model = Model("loop")
    model.component("sender", "sender", o_i="out", s="in")
    model.component("receiver", "receiver", s="in", o_i="out")
    model.conduit("sender.out", "receiver.in")
    model.conduit("receiver.out", "sender.in")
    return model


async def returns(instance):
    """Returns every received message to the sender."""
    await instance.reuse()
    instance.skip_checks("it answers")
    for _ in range(3):
        message = await instance.receive("in")
        await instance.send("out", message.data, timestamp=0)


async def gets_while_another_works(instance):
    await instance.reuse()
    instance.skip_checks("two tasks")

    async def gets():
        return [(await instance.receive("in")).data for _ in range(3)]

    getting = asyncio.create_task(gets())
    for number in range(3):
        # Work that lasts longer than a wait that the manager hears of.
        await asyncio.sleep(0.3)
        await instance.send("out", number, timestamp=number)
    return await getting


def test_a_task_that_works_while_another_waits_is_of_no_cycle(stage):
    assert stage.play(gets_while_another_works, returns, looped())["sender"] == [0, 1, 2]


def test_a_task_that_works_while_the_main_one_waits_is_of_no_cycle(stage):
    async def gets(instance):
        await instance.reuse()
        instance.skip_checks("two tasks")

        async def works():
            for number in range(3):
                await asyncio.to_thread(time.sleep, 0.3)
                await instance.send("out", number, timestamp=number)

        working = asyncio.create_task(works())
        numbers = [(await instance.receive("in")).data for _ in range(3)]
        await working
        return numbers

    assert stage.play(gets, returns, looped())["sender"] == [0, 1, 2]


def test_a_program_whose_task_works_while_another_waits_is_of_no_cycle(stage):
    program = """
import asyncio, titin.aio

async def gets(instance):
    return [(await instance.receive("in")).data for _ in range(3)]

async def main():
    async with titin.aio.Instance(s=["in"], o_i=["out"], unchecked="two tasks") as instance:
        await instance.reuse()
        getting = asyncio.create_task(gets(instance))
        for number in range(3):
            await asyncio.sleep(0.3)
            await instance.send("out", number, timestamp=number)
        assert await getting == [0, 1, 2]

asyncio.run(main())
"""
    answers = """
import titin

with titin.Instance(s=["in"], o_i=["out"], unchecked="it answers") as instance:
    instance.reuse()
    for _ in range(3):
        instance.send("out", instance.receive("in").data, timestamp=0)
"""
    stage.run(looped(), sender=program, receiver=answers)


def test_a_cycle_is_found_beside_a_function_that_works(stage):
    """Each task that the host has made is for one instance alone."""
    model = looped()
    model.component("third", "third")
    go_on = asyncio.Event()

    async def waits(instance):
        await instance.reuse()
        try:
            await instance.receive("in")
        finally:
            go_on.set()

    async def works(instance):
        await instance.reuse()
        await go_on.wait()

    with pytest.raises(titin.Deadlock, match="deadlock"):
        titin.run(model, {"sender": waits, "receiver": waits, "third": works}, run_dir=stage.folder / "run")


def test_a_cycle_of_programs_is_a_deadlock(stage):
    program = """
import asyncio, titin.aio

async def main():
    async with titin.aio.Instance(s=["in"], o_i=["out"]) as instance:
        await instance.reuse()
        await instance.receive("in")

asyncio.run(main())
"""
    process = stage.launch(looped(), sender=program, receiver=program)
    output, _ = process.communicate()
    assert process.returncode != 0
    assert "deadlock" in output


def test_an_exception_fails_the_run(stage):
    async def breaks(instance):
        await instance.reuse()
        raise ValueError("seven is not eight")

    raised, log = stage.fails(breaks, receives)
    assert isinstance(raised, ValueError)
    assert "sender reported an error: ValueError: seven is not eight" in log


def test_a_message_that_nobody_takes_is_told_at_the_end(stage):
    async def sends_one(instance):
        await instance.reuse()
        await instance.send("out", 1, timestamp=0)

    async def takes_none(instance):
        await instance.reuse()

    raised, _ = stage.fails(sends_one, takes_none)
    assert isinstance(raised, titin.CallOrderError)
    assert "never taken" in str(raised)


def test_a_program_of_coroutines(stage):
    """As under `titin run`: the environment names the instance."""
    program = """
import asyncio, titin.aio

async def main():
    async with titin.aio.Instance({ports}) as instance:
        assert "closed" not in repr(instance)
        while await instance.reuse():
            {what}

asyncio.run(main())
"""
    process = stage.launch(
        pair(),
        sender=program.format(ports="o_i=['out']", what="await instance.send('out', 3, timestamp=0)"),
        receiver=program.format(ports="s=['in']", what="assert (await instance.receive('in')).data == 3"),
    )
    output, _ = process.communicate()
    assert process.returncode == 0, output


def test_an_instance_that_is_not_open_says_so():
    instance = titin.aio.Instance()
    with pytest.raises(titin.UsageError, match="async with"):
        instance.log("info", "too early")
