"""Masked arrays are refused wherever the values under the mask would be sent."""

from __future__ import annotations

from .conftest import pair

SENDER = """
import numpy as np
import titin

with titin.Instance(o_i="out spare") as instance:
    while instance.reuse():
        masked = np.ma.masked_array(np.arange(4.0), [True, False, False, True])
        field = instance.field("out", (4,), float)
        try:
            field.send(masked, timestamp=0.0)
        except titin.TypeMismatch as why:
            print("sender:", why)
        field.send(masked.filled(-1.0), timestamp=0.0)
"""

RECEIVER = """
import numpy as np
import titin

with titin.Instance(s="in other") as instance:
    while instance.reuse():
        masked = np.ma.masked_array(np.zeros(4), [True, False, False, True])
        field = instance.field("in", (4,), float)
        try:
            field.receive(masked)
        except titin.TypeMismatch as why:
            print("receiver:", why)
        field.receive(masked.data)
        assert masked.data.tolist() == [-1.0, 1.0, 2.0, -1.0]
        assert masked.mask.tolist() == [True, False, False, True]
"""


def test_fields_refuse_them_and_say_what_to_give(stage):
    stage.run(pair(), sender=SENDER, receiver=RECEIVER)
    output = stage.output()
    assert "sender: cannot send a numpy.ma.MaskedArray of dtype float64, a masked array: send .filled(value)" in output
    assert (
        "receiver: cannot receive into a numpy.ma.MaskedArray of dtype float64, a masked array: receive into its .data"
        in output
    )
