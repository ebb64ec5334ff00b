"""The ways to receive: with a time limit, without waiting, from several ports, into memory of the program, by slot."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import titin
from titin.model import Model

from .conftest import pair


def sends(*messages):
    """A sender of these data on `out`, at times 0, 1, ..."""

    def sender(instance):
        while instance.reuse():
            for time, data in enumerate(messages):
                instance.send("out", data, timestamp=time)

    return sender


def once(receive):
    """A receiver that calls the function in each use."""

    def receiver(instance):
        found = None
        while instance.reuse():
            found = receive(instance)
        return found

    return receiver


def test_timestamps_arrive(stage):
    def sender(instance):
        while instance.reuse():
            instance.send("out", timestamp=0.5, next_timestamp=1)
            instance.send("out", timestamp=np.float64(1.0))

    def receive(instance):
        first, second = instance.receive("in"), instance.receive("in")
        return first.timestamp, first.next_timestamp, first.data, second.timestamp, second.next_timestamp

    returned = stage.play(sender, once(receive))
    assert returned["receiver"] == (0.5, 1.0, None, 1.0, None)


def test_a_timeout_ends_and_the_instance_goes_on(stage):
    go = threading.Event()

    def sender(instance):
        while instance.reuse():
            go.wait()
            instance.send("out", 1, timestamp=0.0)

    def receive(instance):
        with pytest.raises(titin.Timeout) as raised:
            instance.receive("in", timeout=0.01)
        assert isinstance(raised.value, TimeoutError)
        with pytest.raises(titin.Timeout):
            instance.receive_any("in", timeout=0)
        with pytest.raises(titin.Timeout):
            instance.receive_into("in", np.zeros(1), timeout=0.001)
        go.set()
        return instance.receive("in", timeout=100).data

    assert stage.play(sender, once(receive))["receiver"] == 1


def test_trying_does_not_wait(stage):
    go = threading.Event()

    def sender(instance):
        while instance.reuse():
            go.wait()
            instance.send("out", 1, timestamp=0.0)

    def receive(instance):
        assert instance.try_receive("in") is None
        go.set()
        while (message := instance.try_receive("in")) is None:
            pass
        return message.data

    assert stage.play(sender, once(receive))["receiver"] == 1


def test_a_finished_sender_closes_its_port(stage):
    def receive(instance):
        assert instance.receive("in").data == "only"
        for call in (instance.receive, instance.try_receive, instance.receive_any):
            with pytest.raises(titin.PortClosed, match="in"):
                while True:
                    call("in")
        return True

    assert stage.play(sends("only"), once(receive))["receiver"]


def test_a_default_is_for_ports_that_nothing_is_connected_to(stage):
    own = titin.Message("own", timestamp=3.0)

    def receive(instance):
        assert not instance.port("other").connected
        assert instance.receive("other", default=own) is own
        assert instance.receive("other", default=None).data is None
        message = instance.receive("other", default=[1])
        assert message.port is None
        assert (message.data, message.timestamp) == ([1], 0.0)
        # Connected ports have messages of their own.
        assert instance.receive("in", default=2).data == "sent"
        with pytest.raises(titin.Error, match="other"):
            instance.receive("other")
        return True

    assert stage.play(sends("sent"), once(receive))["receiver"]


def test_an_unconnected_port_sends_nowhere(stage):
    def sender(instance):
        while instance.reuse():
            assert not instance.port("spare").connected
            instance.send("spare", np.zeros(3), timestamp=0.0)

    stage.play(sender, once(lambda _: None))


@pytest.mark.parametrize("layout", ["c", "fortran", "strided", "reversed"])
def test_into_memory_of_ones_own(stage, layout):
    sent = np.arange(12.0).reshape(3, 4)

    def receive(instance):
        room = {
            "c": np.zeros((3, 4)),
            "fortran": np.zeros((3, 4), order="F"),
            "strided": np.zeros((6, 8))[::2, ::2],
            "reversed": np.zeros((3, 4))[::-1, ::-1],
        }[layout]
        for data in (sent, sent.T.copy().T):
            room[:] = 0
            message = instance.receive_into("in", room)
            np.testing.assert_array_equal(room, data)
        return message.timestamp

    assert stage.play(sends(sent, np.asfortranarray(sent)), once(receive))["receiver"] == 1.0


@pytest.mark.parametrize(
    ("room", "text"),
    [(np.zeros(4), "shape"), (np.zeros((2, 3), "f4"), "float32"), (np.zeros((3, 2)), "shape")],
    ids=["rank", "dtype", "shape"],
)
def test_memory_that_does_not_fit_is_refused(stage, room, text):
    def receive(instance):
        with pytest.raises(titin.TypeMismatch) as raised:
            instance.receive_into("in", room)
        assert text in str(raised.value)
        assert not room.any()
        # The message is there still, for the next call.
        with pytest.raises(titin.TypeMismatch):
            instance.receive_into("in", room)
        if room.dtype == np.float32:
            assert instance.receive_any("in", "other")[2].data.all()
        else:
            fits = np.zeros((2, 3))
            instance.receive_into("in", fits)
            assert fits.all()
        return instance.receive_any("in", "other")[2].data

    model = pair()
    model.conduit("sender.spare", "receiver.other")
    assert stage.play(sends(np.ones((2, 3)), "next"), once(receive), model)["receiver"] == "next"


@pytest.mark.parametrize(
    ("sent", "dtype", "told"),
    [
        (300, "int8", r"expected int8 \(-128 to 127\), a single value, the value is the whole number 300"),
        (-1, "uint64", r"expected uint64 \(0 to 18446744073709551615\), a single value, .* the whole number -1"),
        (2.5, "int32", r"expected int32 \(-2147483648 to 2147483647\), .* the real number 2\.5"),
        (1e300, "float32", r"expected float32 \(up to 3\.4028235e38\), a single value, .* the real number 1e300"),
        (True, "float64", r"expected float64, a single value, the value is the bool true"),
    ],
)
def test_a_number_that_does_not_fit_is_told_with_what_was_asked_for(stage, sent, dtype, told):
    def receive(instance):
        with pytest.raises(titin.TypeMismatch, match=told):
            instance.receive_into("in", np.zeros((), dtype))
        return instance.receive("in").data

    assert stage.play(sends(sent), once(receive))["receiver"] == sent


class Tensor:
    """An array with DLPack only, like the tensors of libraries for learning."""

    def __init__(self, data, device=1):
        self.data, self.device = data, device

    def __dlpack__(self, **arguments):
        assert self.device == 1, "asked for its memory"
        return self.data.__dlpack__(**arguments)

    def __dlpack_device__(self):
        return self.device, 3


def test_into_a_tensor_of_dlpack(stage):
    sent = np.arange(12.0).reshape(3, 4)

    def sender(instance):
        field = instance.field("spare", (3, 4), float)
        while instance.reuse():
            for time in range(2):
                instance.send("out", sent + time, timestamp=time)
            field.send(sent + 2, timestamp=0.0)

    def receiver(instance):
        field = instance.field("other", (3, 4), float)
        while instance.reuse():
            for time, room in enumerate([np.zeros((3, 4)), np.zeros((6, 8))[::2, ::2]]):
                instance.receive_into("in", Tensor(room))
                np.testing.assert_array_equal(room, sent + time)
            field.receive(Tensor(room))
            np.testing.assert_array_equal(room, sent + 2)

    model = pair()
    model.conduit("sender.spare", "receiver.other")
    stage.play(sender, receiver, model)


def test_a_tensor_of_dlpack_that_cannot_be_filled_is_refused(stage):
    def receive(instance):
        room = np.zeros(3)
        text = r"cannot receive into .*Tensor.* of a device \(ROCm, DLPack device type 10, number 3\); receive into"
        with pytest.raises(titin.TypeMismatch, match=text):
            instance.receive_into("in", Tensor(room, 10))
        room.flags.writeable = False
        with pytest.raises(titin.TypeMismatch, match=r"cannot receive into .*Tensor.* may only be read"):
            instance.receive_into("in", Tensor(room))
        with pytest.raises(titin.TypeMismatch, match="float32"):
            instance.receive_into("in", Tensor(np.zeros(3, "f4")))
        assert not room.any()
        return instance.receive("in").data.tolist()

    assert stage.play(sends(np.ones(3)), once(receive))["receiver"] == [1, 1, 1]


def test_memory_that_cannot_be_written_to_is_refused(stage):
    def receive(instance):
        for room in (np.zeros(3)[:0:-1].view(), b"abc"):
            if isinstance(room, np.ndarray):
                room.flags.writeable = False
            with pytest.raises(titin.TypeMismatch, match="cannot receive into"):
                instance.receive_into("in", room)
        return instance.receive("in").data

    assert stage.play(sends("still there"), once(receive))["receiver"] == "still there"


@pytest.mark.parametrize("way", ["message", "field"])
def test_what_helps_where_the_bytes_of_an_array_are_in_another_order(stage, way):
    def sender(instance):
        assert instance.reuse()
        if way == "message":
            instance.send("out", np.arange(3.0), timestamp=0.0)
        else:
            field = instance.field("out", (3,), float)
            with pytest.raises(titin.TypeMismatch, match=r"cannot send .* send \.astype\(array\.dtype"):
                field.send(np.arange(3, dtype=">f8"), timestamp=0.0)
            field.send(np.arange(3.0), timestamp=0.0)
        assert not instance.reuse()

    def receive(instance):
        array = np.zeros(3, ">f8")
        field = instance.field("in", (3,), float) if way == "field" else None

        def fill(room):
            return field.receive(room) if field else instance.receive_into("in", room)

        # titin would fill a copy of the object, and the copy would be thrown away.
        with pytest.raises(titin.TypeMismatch, match=r"cannot receive into .*; receive into another one") as raised:
            fill(array)
        # The test runs the code that the text of the error advises.
        code = str(raised.value).partition("another one, ")[2].removesuffix(" swaps them")
        make, copy = code.split(", and ")
        names = {"numpy": np, "array": array}
        exec(make, names)
        fill(names["native"])
        exec(copy, names)
        return array.tolist()

    assert stage.play(sender, once(receive))["receiver"] == [0.0, 1.0, 2.0]


def fan(members: int) -> Model:
    """A model of a sender with vector ports, and members."""
    model = Model("fan")
    model.component("sender", "sender", o_i="out", s="back")
    model.component("receiver", "receiver", f_init="in", o_f="out", multiplicity=members)
    model.conduit("sender.out", "receiver.in")
    model.conduit("receiver.out", "sender.back")
    return model


def test_slots_of_a_vector_port(stage):
    def sender(instance):
        while instance.reuse():
            out, back = instance.port("out"), instance.port("back")
            assert (out.vector, out.slots, out.resizable, out.operator) == (True, 3, False, "o_i")
            for slot in range(out.slots):
                instance.send(out, slot * 10, slot=slot, timestamp=0.0)
            found = [instance.receive(back, slot=slot).data for slot in reversed(range(3))]
            with pytest.raises(titin.UsageError, match="slot"):
                instance.send(out, 1, timestamp=1.0)
            with pytest.raises(titin.UsageError, match="3"):
                instance.send(out, 1, slot=3, timestamp=1.0)
        return found

    def receiver(instance):
        while instance.reuse():
            message = instance.receive("in")
            instance.send("out", [instance.name, message.data], timestamp=message.timestamp)

    returned = stage.play(sender, receiver, fan(3))
    assert returned["sender"] == [["receiver[2]", 20], ["receiver[1]", 10], ["receiver[0]", 0]]


def test_any_port_and_slot(stage):
    def sender(instance):
        found = []
        while instance.reuse():
            for slot in range(3):
                instance.send("out", slot, slot=slot, timestamp=0.0)
            for _ in range(3):
                port, slot, message = instance.receive_any("back")
                assert (port, slot) == ("back", message.data)
                found.append(slot)
        return sorted(found)

    def receiver(instance):
        while instance.reuse():
            message = instance.receive("in")
            instance.send("out", message.data, timestamp=0.0)

    assert stage.play(sender, receiver, fan(3))["sender"] == [0, 1, 2]


@pytest.mark.parametrize("together", [lambda *ports: ports, lambda *ports: [[*ports]], lambda *ports: [ports]])
def test_any_of_several_ports_by_name_or_handle(stage, together):
    """Ports are given one by one, in a list, in a tuple."""
    model = pair()
    model.conduit("sender.spare", "receiver.other")

    def sender(instance):
        while instance.reuse():
            instance.send("out", 1, timestamp=0.0)
            instance.send("spare", 2, timestamp=0.0)

    def receive(instance):
        found = {}
        for _ in range(2):
            port, slot, message = instance.receive_any(*together("in", instance.port("other")))
            assert message.port == port
            assert slot is None
            found[port] = message.data
        with pytest.raises(titin.PortClosed):
            instance.receive_any("in", "other")
        with pytest.raises(titin.UsageError):
            instance.receive_any()
        return found

    assert stage.play(sender, once(receive), model)["receiver"] == {"in": 1, "other": 2}


def test_a_resizable_port(stage):
    def sender(instance):
        out = instance.port("out")
        assert out.resizable
        while instance.reuse():
            out.slots = 5
            assert out.slots == 5
            for slot in range(5):
                instance.send(out, slot, slot=slot, timestamp=0.0)

    def receive(instance):
        first = instance.receive("in", slot=0).data
        return [first] + [instance.receive("in", slot=slot).data for slot in range(1, instance.port("in").slots)]

    def play_sender():
        with titin.Instance(o_i=["out[]", "spare"]) as instance:
            sender(instance)

    def play_receiver():
        with titin.Instance(s=["in[]", "other"]) as instance:
            return once(receive)(instance)

    assert stage.play(play_sender, play_receiver)["receiver"] == [0, 1, 2, 3, 4]


FIRST = """
import os
import titin

with titin.Instance(o_i=["out"]) as instance:
    while instance.reuse():
        instance.send("out", os.getpid(), timestamp=0)
"""

SECOND = """
import titin

with titin.Instance(o_i=["out"], s=["go"]) as instance:
    while instance.reuse():
        instance.receive("go")
        instance.send("out", "late", timestamp=0)
"""

BOTH = """
import os
import titin

with titin.Instance(s=["one", "two"], o_i=["go"]) as instance:
    while instance.reuse():
        pid = instance.receive_any("one", "two")[2].data
        rounds = 20
        while rounds:
            try:
                instance.receive_any("one", "two", timeout=0.01)
            except titin.Timeout:
                rounds -= not os.path.exists(f"/proc/{pid}")
        instance.send("go", timestamp=0)
        assert instance.receive_any("one", "two")[2].data == "late"
"""


def test_a_sender_that_has_gone_long_ago_is_not_missed(stage, monkeypatch):
    monkeypatch.setenv("TITIN_EXPLANATION", "20")
    model = Model("fan")
    model.component("first", "first", o_i="out")
    model.component("second", "second", o_i="out", s="go")
    model.component("receiver", "receiver", s="one two", o_i="go")
    model.conduit("first.out", "receiver.one")
    model.conduit("second.out", "receiver.two")
    model.conduit("receiver.go", "second.go")
    stage.run(model, first=FIRST, second=SECOND, receiver=BOTH)


def test_a_flat_array_of_a_field_lies_in_order_whatever_the_one_before_did(stage):
    numbers = np.arange(6.0).reshape(2, 3)

    def sender(instance):
        field = instance.field("out", numbers.shape, float)
        while instance.reuse():
            field.send(np.asfortranarray(numbers), timestamp=0.0)
            field.send(numbers.ravel(), timestamp=1.0)

    def receiver(instance):
        field, got = instance.field("in", numbers.shape, float), []
        while instance.reuse():
            for array in (np.full((3, 2), -1.0).T, np.full(6, -1.0)):
                field.receive(array)
                got.append(array.reshape(numbers.shape))
        return got

    np.testing.assert_array_equal(stage.play(sender, receiver)["receiver"], [numbers, numbers])
