"""The properties of an instance, and its end."""

from __future__ import annotations

import contextlib
import gc
import logging
import sqlite3
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import titin
from titin.model import Model

from .conftest import pair


def alone(function):
    """A role for the sender, while the receiver does nothing."""

    def sender(instance):
        while instance.reuse():
            found = function(instance)
        return found

    return sender


def idle(instance):
    while instance.reuse():
        pass


SETTINGS = {
    "dt": "10 ms",
    "steps": 5,
    "rate": 2.5,
    "on": True,
    "label": "text",
    "counts": [1, 2, 3],
    "weights": [0.5, 1.5],
    "table": [[1.0, 2.0], [3.0, 4.0]],
    "sender.rate": 3.5,
    "receiver.rate": 1.5,
}


def test_settings_as_types_and_in_units(stage):
    model = pair()
    model.settings = SETTINGS

    def look(instance):
        get = instance.setting
        assert get("dt", "s") == 0.01
        assert get("dt", "us") == pytest.approx(10_000)
        with pytest.raises(titin.SettingError, match="ask for it in the unit"):
            get("dt", float)
        assert get("dt") == get("dt", str) == "10 ms"
        assert get("steps", int) == get("steps") == 5
        assert get("steps", float) == 5.0
        assert type(get("steps", float)) is float
        assert get("rate", float) == get("rate", "m") == 3.5
        assert get("on", bool) is True
        assert get("label", str) == "text"
        assert get("counts", list[int]) == [1, 2, 3]
        assert get("counts", list[float]) == [1.0, 2.0, 3.0]
        assert get("weights", list[float]) == get("weights") == [0.5, 1.5]
        assert get("table", list[list[float]]) == get("table") == [[1.0, 2.0], [3.0, 4.0]]
        return instance.settings

    settings = stage.play(alone(look), idle, model)["sender"]
    assert settings["sender.rate"] == 3.5
    assert settings["table"] == [[1.0, 2.0], [3.0, 4.0]]


def test_settings_with_defaults(stage):
    model = pair()
    model.settings = {"rate": 2.5}

    def look(instance):
        assert instance.setting("rate", float, 1.0) == 2.5
        assert instance.setting("missing", float, 1.0) == 1.0
        assert instance.setting("missing", default=None) is None
        assert instance.setting("missing", "s", default="kept as it is") == "kept as it is"
        with pytest.raises(titin.SettingError, match="missing"):
            instance.setting("missing", float)

    stage.play(alone(look), idle, model)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("label", float), ("label", int), ("rate", int), ("rate", str), ("steps", bool), ("on", int), ("dt", "m")]
    + [("counts", float), ("rate", list[float]), ("weights", list[int]), ("counts", list[list[float]])],
    ids=str,
)
def test_settings_of_another_type_are_errors(stage, name, kind):
    model = pair()
    model.settings = SETTINGS

    def look(instance):
        with pytest.raises(titin.SettingError, match=f"'{name}'") as raised:
            instance.setting(name, kind)
        assert isinstance(raised.value, ValueError)
        with pytest.raises(titin.UsageError, match="settings are read as"):
            instance.setting(name, dict)

    stage.play(alone(look), idle, model)


def test_scales_of_the_description(stage):
    model = pair()
    model.titin = {
        "scales": {"sender": {"dt": "10 ms", "total": "1 h", "dx": ["1 mm", "2 mm"], "extent": ["1 m", "2 m"]}}
    }

    def look(instance):
        return instance.scale

    def look_too(instance):
        idle(instance)
        return instance.scale

    returned = stage.play(alone(look), look_too, model)
    assert returned["sender"] == titin.Scale(dt=0.01, total=3600.0, dx=(0.001, 0.002), extent=(1.0, 2.0))
    assert returned["receiver"] == titin.Scale()


def test_ports_and_names(stage):
    def look(instance):
        assert list(instance.ports) == ["out", "spare"]
        port = instance.port("out")
        assert port is instance.port(port) is instance.ports["out"]
        assert (port.name, port.operator, port.vector, port.connected, port.slots) == ("out", "o_i", False, True, 1)
        assert instance.port("spare").connected is False
        assert repr(port) == "<port out (o_i)>"
        with pytest.raises(titin.UsageError, match="out"):
            instance.port("otu")
        with pytest.raises(titin.UsageError):
            instance.send("otu", timestamp=0.0)
        with pytest.raises(TypeError, match="a port is given by its name"):
            instance.send(3, timestamp=0.0)
        with pytest.raises(TypeError, match=r"a port is given by its name .*; found 3"):
            instance.receive_any(["out", 3])
        with pytest.raises(titin.UsageError, match="slots"):
            port.slots = 3
        return instance.name, repr(instance), instance.workdir.is_dir(), instance.time_unit

    found = stage.play(alone(look), idle)["sender"]
    assert found == ("sender", "<titin.Instance sender>", True, "s")


def test_a_port_of_another_instance_is_refused(stage):
    ports = {}
    there = threading.Event()

    def sender(instance):
        while instance.reuse():
            there.wait()
            with pytest.raises(titin.UsageError, match="another instance"):
                instance.send(ports["in"], timestamp=0.0)

    def receiver(instance):
        while instance.reuse():
            ports.update(instance.ports)
            there.set()

    stage.play(sender, receiver)


def test_the_log_of_the_run(stage):
    def look(instance):
        instance.log("warning", "from the \0 log")
        instance.log(logging.ERROR, "by number")
        with pytest.raises(titin.UsageError, match="level"):
            instance.log("loud", "x")
        logger = logging.getLogger("titin-test")
        handler = titin.LogHandler(instance)
        logger.addHandler(handler)
        logger.error("from %s", "logging")
        return logger

    logger = stage.play(alone(look), idle)["sender"]
    logger.error("after the end")
    log = (stage.folder / "run/titin_manager.log").read_text()
    for record in ("from the   log", "by number", "from logging"):
        assert record in log
    assert "after the end" not in log


def test_regions_are_in_the_profile(stage):
    def look(instance):
        with instance.region("solve"), instance.region("inner"):
            pass
        region = instance.region("again")
        with region, pytest.raises(titin.UsageError, match="begun"):
            region.__enter__()

    stage.play(alone(look), idle)
    with sqlite3.connect(stage.folder / "run/performance.sqlite") as profile:
        text = "\n".join(profile.iterdump())
    profile.close()
    for name in ("solve", "inner", "again"):
        assert f"'{name}'" in text


def test_what_is_left_when_nothing_is_checked_is_in_the_log(stage):
    def sender(instance):
        while instance.reuse():
            for step in range(3):
                instance.send("out", step, timestamp=step)
            instance.send("spare", timestamp=3.0)

    def receiver():
        with titin.Instance(s="in other", unchecked="only the first one counts") as instance:
            instance.reuse()
            assert instance.receive("in").data == 0
            # The message on `other` was sent after the others, so they have come by now: within a process no message is
            # on its way.
            instance.receive("other")

    model = pair()
    model.conduit("sender.spare", "receiver.other")
    stage.play(sender, receiver, model)
    log = (stage.folder / "run/titin_manager.log").read_text()
    assert "2 messages from sender.out on S port 'in' were never taken, and dropped" in log


def test_the_order_of_calls_is_checked(stage):
    def sender(instance):
        instance.send("out", timestamp=0.0)

    raised, log = stage.fails(sender, idle)
    assert isinstance(raised, titin.CallOrderError)
    assert str(raised).startswith("sender: send on O_I port 'out' before the first reuse(); call reuse()")
    assert f"sender reported an error: titin.errors.CallOrderError: {raised}" in log


@pytest.mark.parametrize(("given", "call"), [((), ""), ((0,), "0"), ((3,), "3"), (("no mesh",), "'no mesh'")])
def test_who_exits_with_its_instance_open_is_told_so(stage, given, call):
    def sender(instance):
        instance.reuse()
        sys.exit(*given)

    raised, log = stage.fails(sender, idle)
    # A SystemExit would end the caller without a word, perhaps with exit code 0.
    assert type(raised) is titin.Error
    assert str(raised) == f"the function of sender called sys.exit({call}), which ends no function: return from it"
    assert isinstance(raised.__cause__, SystemExit)
    assert f"sender reported an error: it called sys.exit({call}) with its instance open: leave the with block" in log
    line = sender.__code__.co_firstlineno + 2
    assert f'File "{__file__}", line {line}, in sender' in log


def test_who_exits_without_an_instance_is_told_so(stage):
    def sender():
        sys.exit(3)

    raised, log = stage.fails(sender, idle)
    assert type(raised) is titin.Error
    assert "sender reported an error: it called sys.exit(3) before it opened its instance: return" in log


@pytest.mark.parametrize("call", ["sys.exit()", "sys.exit(0)", "sys.exit('no mesh')"])
def test_a_program_that_exits_with_its_instance_open_is_told_so(stage, call):
    model = Model("one")
    model.component("alone", "alone")
    program = f"import sys, titin\nwith titin.Instance() as instance:\n    instance.reuse()\n    {call}\n"
    process = stage.launch(model, alone=program)
    output = process.communicate()[0]
    assert process.returncode == 1
    assert f"First:    alone reported an error: it called {call} with its instance open: leave the with block" in output
    assert f'File "{stage.folder / "alone.py"}", line 4, in <module>' in output


def test_the_check_can_be_switched_off_with_a_reason(stage):
    def sender():
        with titin.Instance(o_i="out spare", unchecked="it is a test") as instance:
            instance.send("out", 1, timestamp=2.0)
            instance.send("out", 2, timestamp=1.0)

    def receiver():
        with titin.Instance(s="in other", unchecked="it is a test") as instance:
            return [instance.receive("in").data for _ in range(2)]

    assert stage.play(sender, receiver)["receiver"] == [1, 2]
    assert "it is a test" in (stage.folder / "run/titin_manager.log").read_text()


def test_times_may_differ_from_what_was_announced_where_nothing_is_checked(stage):
    """The log has a warning (no message is dropped), but not for an instance that has switched the checks off with a
    reason."""

    def play(folder, *reasons):
        def sender(instance):
            assert instance.reuse()
            for reason in reasons:
                instance.skip_checks(reason)
            instance.send("out", 1, timestamp=0.0, next_timestamp=1.0)
            instance.send("out", 2, timestamp=3.0)
            assert not instance.reuse()

        def receiver(instance):
            assert instance.reuse()
            received = [instance.receive("in").data for _ in range(2)]
            assert not instance.reuse()
            return received

        inner = type(stage)(stage.folder / folder)
        inner.folder.mkdir()
        assert inner.play(sender, receiver)["receiver"] == [1, 2]
        return (inner.folder / "run/titin_manager.log").read_text()

    warning = "the message on O_I port 'out' is at 3.0, where the one before had announced 1.0"
    assert warning in play("checked")
    log = play("unchecked", "steps are cut short")
    assert warning not in log and "dropped" not in log
    assert "steps are cut short" in log


def test_the_check_can_be_switched_off_later(stage):
    def sender(instance):
        instance.reuse()
        instance.send("out", 1, timestamp=2.0)
        instance.skip_checks("it goes back")
        instance.send("out", 2, timestamp=1.0)
        instance.reuse()

    def receiver(instance):
        instance.skip_checks("so it must here")
        return [instance.receive("in").data for _ in range(2)]

    assert stage.play(sender, receiver)["receiver"] == [1, 2]
    log = (stage.folder / "run/titin_manager.log").read_text()
    assert "it goes back" in log and "so it must here" in log


@pytest.mark.parametrize("reason", ["", " "])
def test_the_check_is_not_switched_off_without_a_reason(stage, reason):
    with pytest.raises(titin.UsageError, match="say why"):
        titin.Instance(unchecked=reason)

    def look(instance):
        with pytest.raises(titin.UsageError, match="say why"):
            instance.skip_checks(reason)

    stage.play(alone(look), idle)


def test_a_closed_instance_answers_nothing(stage):
    def sender(instance):
        idle(instance)
        port = instance.port("out")
        instance.close()
        instance.close()
        assert instance.closed
        assert repr(instance) == "<titin.Instance sender, closed>"
        calls = [
            instance.reuse,
            lambda: instance.send("out", timestamp=0.0),
            lambda: instance.receive("out"),
            lambda: instance.setting("x", default=1),
            lambda: instance.settings,
            lambda: instance.overlay,
            lambda: instance.scale,
            lambda: instance.skip_checks("x"),
            lambda: instance.log(10, "x"),
            lambda: instance.fail("x"),
            lambda: port.connected,
            lambda: port.slots,
            lambda: instance.port("out"),
        ]
        for call in calls:
            with pytest.raises(titin.Closed, match="closed"):
                call()
        return instance.name

    assert stage.play(sender, idle)["sender"] == "sender"


def test_an_exception_fails_the_run_and_is_raised_again(stage):
    class Mine(Exception):
        pass

    def broken_helper():
        raise Mine("this is the reason")

    joined = threading.Event()
    seen = []

    def sender(instance):
        while instance.reuse():
            joined.wait()
            broken_helper()

    def receiver(instance):
        joined.set()
        try:
            while instance.reuse():
                instance.receive("in")
        except titin.PeerLost as lost:
            seen.append(str(lost))
            raise

    raised, log = stage.fails(sender, receiver)
    assert isinstance(raised, Mine)
    assert "this is the reason" in log
    assert "broken_helper" in log
    assert "sender" in seen[0]
    assert "this is the reason" in seen[0]


def test_fail_by_hand(stage):
    def sender(instance):
        instance.reuse()
        instance.fail("it does not converge")

    raised, log = stage.fails(sender, idle)
    assert "it does not converge" in str(raised)
    assert "it does not converge" in log


def test_an_instance_that_is_let_go_fails_the_run(stage):
    def sender():
        instance = titin.Instance(o_i="out spare")
        instance.reuse()

    raised, _ = stage.fails(sender, idle)
    assert "without closing" in str(raised)


def test_the_exception_that_lets_go_of_an_instance_is_not_lost(stage):
    caught = []

    def sender():
        try:
            titin.Instance(o_i="out spare").receive("out")
        except Exception as error:
            caught.append(error)
            raise

    stage.fails(sender, idle)
    assert isinstance(caught[0], titin.UsageError), caught


def test_a_function_that_never_opens_its_instance(stage):
    raised, _ = stage.fails(lambda: None, idle)
    assert "without opening its instance" in str(raised)


def test_a_function_that_cannot_open_its_instance(stage):
    def sender():
        titin.Instance(o_i=["1wrong"])

    raised, log = stage.fails(sender, idle)
    assert isinstance(raised, titin.UsageError)
    assert "1wrong" in str(raised) and "1wrong" in log


def test_a_function_that_opens_its_instance_at_the_second_attempt(stage):
    def sender():
        with pytest.raises(titin.UsageError, match="1wrong"):
            titin.Instance(o_i=["1wrong"])
        with titin.Instance(o_i="out spare") as instance:
            idle(instance)
        return "well"

    assert stage.play(sender, idle)["sender"] == "well"


def test_messages_never_taken_are_an_error(stage):
    sent = threading.Event()

    def sender(instance):
        while instance.reuse():
            instance.send("out", 1, timestamp=0.0)
            sent.set()

    def receiver(instance):
        while instance.reuse():
            sent.wait()

    raised, _ = stage.fails(sender, receiver)
    assert isinstance(raised, titin.CallOrderError)
    assert "never taken" in str(raised)


def test_waiting_lets_other_threads_run(stage):
    beats = []

    def sender(instance):
        while instance.reuse():
            while len(beats) < 100:
                time.sleep(0)
            instance.send("out", 1, timestamp=0.0)

    def receiver(instance):
        while instance.reuse():
            thread = threading.Thread(target=lambda: [beats.append(time.monotonic()) for _ in range(100)])
            thread.start()
            # If the call kept the GIL, neither the thread nor the sender could go on.
            instance.receive("in")
            thread.join()

    stage.play(sender, receiver)
    assert len(beats) == 100


def test_two_threads_at_one_port_are_detected(stage):
    detected = threading.Event()

    def sender(instance):
        while instance.reuse():
            detected.wait()
            instance.send("out", 1, timestamp=0.0)

    def receiver(instance):
        found = []

        def receive():
            """Receives. The second of the two threads gets an error."""
            while not found:
                try:
                    found.append(instance.receive("in", timeout=0.001).data)
                except titin.Timeout:
                    pass
                except titin.PortClosed:
                    return
                except titin.UsageError as raised:
                    assert "two calls at once on port 'in'" in str(raised)
                    detected.set()

        while instance.reuse():
            threads = [threading.Thread(target=receive) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return found

    assert stage.play(sender, receiver)["receiver"] == [1]


def test_closing_while_another_thread_waits_is_refused(stage):
    refused = threading.Event()

    def sender(instance):
        while instance.reuse():
            refused.wait()
            instance.send("out", 1, timestamp=0.0)

    def receiver(instance):
        def receive():
            # The second of the two threads is refused. This thread then calls again.
            while not found:
                with contextlib.suppress(titin.UsageError):
                    found.append(instance.receive("in").data)

        thread = threading.Thread(target=receive)
        found = []
        while instance.reuse():
            thread.start()
            while not refused.is_set():
                # No message has come before the thread is in its call.
                try:
                    assert instance.try_receive("in") is None
                except titin.UsageError:
                    with pytest.raises(titin.UsageError, match="another thread is in a call"):
                        instance.close()
                    refused.set()
            thread.join()
        return found

    assert stage.play(sender, receiver)["receiver"] == [1]


def test_threads_may_use_different_ports(stage):
    model = pair()
    model.conduit("sender.spare", "receiver.other")

    def in_threads(*calls):
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def sender(instance):
        def send(port):
            for time_ in range(200):
                instance.send(port, np.full(100, time_), timestamp=time_)

        while instance.reuse():
            in_threads(lambda: send("out"), lambda: send("spare"))

    def receiver(instance):
        found = {"in": [], "other": []}

        def receive(port):
            for _ in range(200):
                found[port].append(int(instance.receive(port).data[0]))

        while instance.reuse():
            in_threads(lambda: receive("in"), lambda: receive("other"))
        return found

    found = stage.play(sender, receiver, model)["receiver"]
    assert found == {"in": list(range(200)), "other": list(range(200))}


def test_instances_can_be_collected(stage):
    references = []

    def sender(instance):
        references.append(weakref.ref(instance))
        idle(instance)

    stage.play(sender, idle)
    gc.collect()
    assert references[0]() is None


def test_without_a_run_it_says_how_to_join_one(monkeypatch):
    for name in ("TITIN_MANAGER", "TITIN_INSTANCE", "MUSCLE_MANAGER", "MUSCLE_INSTANCE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(titin.ConnectionFailed, match="titin run"):
        titin.Instance()
    with pytest.raises(titin.ConnectionFailed, match="connection file"):
        titin.Instance(name="a", manager="/nowhere/connection.json")
    with pytest.raises(titin.UsageError, match="1wrong"):
        titin.Instance(f_init=["1wrong"], name="a", manager="/nowhere")


def test_arguments_that_cannot_be_are_errors_of_titin(stage):
    def odd(instance):
        wrong = {
            "is neither a slot nor a number of them": lambda: instance.send("out", 1, timestamp=0.0, slot=2**40),
            "-1 is neither a slot": lambda: instance.send("out", 1, timestamp=0.0, slot=-1),
            "from 0 to 2147483647": lambda: setattr(instance.port("out"), "slots", 2**31),
            "half of a surrogate": lambda: instance.setting("\ud800"),
            "character 0": lambda: instance.setting("x\0y", int),
            "not Unicode": lambda: instance.port("\ud800"),
            "given by its name": lambda: instance.port(3),
            "has a character 0": lambda: instance.region("\0"),
            "cannot receive into a numpy.ndarray": lambda: instance.receive_into("out", np.frombuffer(b"12345678")),
            "a reason, not a flag": lambda: titin.Instance(unchecked=True),
            "declared twice": lambda: titin.Instance(o_i=["out", "out"]),
        }
        for text, call in wrong.items():
            with pytest.raises(titin.Error, match=text):
                call()
        # Objects that are shown to people are taken in any form.
        instance.log("warning", "lone \ud800 and \0")

    stage.play(alone(odd), idle)
    assert "lone" in (stage.folder / "run/titin_manager.log").read_text()
