"""Loans: arrays in memory that titin lends, sent without a copy."""

from __future__ import annotations

import gc
import json
import subprocess

import ml_dtypes  # noqa: F401, as NumPy has no bfloat16 without it
import numpy as np
import pytest
import titin

from ..conftest import TITIN
from .conftest import pair

DTYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", "bfloat16"]


def test_loans_of_all_shapes_and_types(stage):
    shapes = [(), 5, (0,), (3, 0, 2), (2, 3, 4), [100, 100]]

    def sender(instance):
        while instance.reuse():
            for time, (dtype, shape, order) in enumerate((d, s, o) for d in DTYPES for s in shapes for o in "CF"):
                array = instance.loan("out", shape, dtype, order=order)
                assert array.dtype == dtype and array.flags.writeable
                array[...] = np.arange(array.size).reshape(array.shape) % 2
                instance.send("out", array, timestamp=time)
                assert not array.flags.writeable

    def receiver(instance):
        while instance.reuse():
            for dtype in DTYPES:
                for shape in shapes:
                    for order in "CF":
                        data = np.asarray(instance.receive("in").data)
                        expected = np.empty(shape)
                        assert data.shape == expected.shape
                        assert (data == np.arange(data.size).reshape(data.shape) % 2).all()
                        if data.ndim > 1 and data.size:
                            assert data.dtype == dtype and data.flags[f"{order}_CONTIGUOUS"]

    stage.play(sender, receiver)


def test_a_loan_is_frozen_once_it_was_sent(stage):
    def sender(instance):
        while instance.reuse():
            array = instance.loan("out", (100, 100), float)
            array[:] = 1.0
            instance.send("out", array, timestamp=0)
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 2.0
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
            # The loan is sent unchanged, as a whole, and then a part of the loan, which is copied.
            instance.send("out", array, timestamp=1)
            instance.send("out", array[:50], timestamp=2)
            # The memory of a loan is not used again while the loan lives.
            others = [instance.loan("out", (100, 100), float) for _ in range(20)]
            for other in others:
                other[:] = 3.0
            assert (array == 1.0).all()
            places = {other.ctypes.data for other in others}
            assert len(places) == 20 and array.ctypes.data not in places
        return array[3:5]

    def receiver(instance):
        kept = None
        while instance.reuse():
            messages = [instance.receive("in") for _ in range(3)]
            assert [message.data.shape[0] for message in messages] == [100, 100, 50]
            assert all((message.data == 1.0).all() for message in messages)
            assert messages[0].data.ctypes.data == messages[1].data.ctypes.data != messages[2].data.ctypes.data
            kept = messages[0].data[::2]
        return kept

    returned = stage.play(sender, receiver)
    gc.collect()
    assert (returned["sender"] == 1.0).all() and (returned["receiver"] == 1.0).all()


def test_a_part_of_a_loan_is_copied_and_the_loan_stays_open(stage):
    def sender(instance):
        while instance.reuse():
            array = instance.loan("out", 1000, "i4")
            array[:] = 1
            instance.send("out", array[:10], timestamp=0)
            array[:] = 2
            instance.send("out", array, timestamp=1)

    def receiver(instance):
        while instance.reuse():
            assert (instance.receive("in").data == 1).all()
            assert (instance.receive("in").data == 2).all()

    stage.play(sender, receiver)


def test_what_cannot_be_lent_is_refused(stage):
    def sender(instance):
        while instance.reuse():
            for dtype in ["O", "U3", "M8[s]", ">f8", "i4,i4"]:
                with pytest.raises(titin.TypeMismatch, match="do not travel so"):
                    instance.loan("out", 3, dtype)
            with pytest.raises(titin.Error, match="extents"):
                instance.loan("out", (3, -1), "f8")
            with pytest.raises(titin.UsageError, match="order"):
                instance.loan("out", 3, "f8", order="A")
            with pytest.raises(titin.Error, match=r"no memory|too many bytes"):
                instance.loan("out", 1 << 61, "f8")
            with pytest.raises(titin.UsageError, match="slot"):
                instance.loan("out", 3, "f8", slot=1)
            instance.send("out", None, timestamp=0)

    def receiver(instance):
        while instance.reuse():
            with pytest.raises(titin.UsageError, match="receives"):
                instance.loan("in", 3, "f8")
            instance.receive("in")

    stage.play(sender, receiver)


LENDER = """
import numpy as np
import titin

with titin.Instance(o_i="out spare") as instance:
    while instance.reuse():
        for time in range(50):
            array = instance.loan("out", 100_000, float)
            array[:] = time
            instance.send("out", array, timestamp=time)
"""

READER = """
import titin

with titin.Instance(s="in other") as instance:
    while instance.reuse():
        views = [instance.receive("in").data for time in range(50)]
assert all((view == time).all() for time, view in enumerate(views))
"""


@pytest.mark.parametrize("medium", ["shm", "tcp"])
def test_loans_go_to_another_process(stage, medium):
    process = stage.launch(pair(), f"medium: {{receiver.in: {medium}}}", sender=LENDER, receiver=READER)
    output = process.communicate()[0]
    assert process.returncode == 0, output + stage.output()
    text = subprocess.run([TITIN, "profile", stage.folder / "run", "--json"], stdout=subprocess.PIPE, check=True).stdout
    (conduit,) = json.loads(text)["conduits"]
    assert (conduit["medium"], conduit["bytes"]) == (medium, 50 * 800_000)
    assert conduit["copied"] == 0 or medium != "shm"
