"""Arrays in each memory layout: each element finds its place, and arrays with overlapping elements are refused."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
import titin
from numpy.lib.stride_tricks import as_strided
from titin.fields import Boxes, Grid

from .conftest import pair

SHAPES = [(), (7,), (3, 4), (2, 1, 4), (2, 3, 2, 2), (2, 1, 3, 1, 2)]
DTYPES = ["?", "i1", "i4", "f2", "f8", "c8", "c16"]


def contiguous(shape, dtype):
    return np.zeros(shape, dtype)


def fortran(shape, dtype):
    return np.zeros(shape, dtype, order="F")


def turned(shape, dtype):
    """The last dimension is the slowest in memory."""
    return np.moveaxis(np.zeros((*shape[-1:], *shape[:-1]), dtype), 0, -1) if shape else np.zeros(shape, dtype)


def every_other(shape, dtype):
    return np.zeros([2 * extent for extent in shape], dtype)[(..., *[slice(1, None, 2)] * len(shape))]


def backwards(shape, dtype):
    return np.zeros(shape, dtype)[(..., *[slice(None, None, -1)] * len(shape))]


def part(shape, dtype):
    return np.zeros([extent + 3 for extent in shape], dtype, order="F")[(..., *[slice(1, -2)] * len(shape))]


def column(shape, dtype):
    return np.zeros(shape, [("key", dtype), ("number", dtype)])["number"]


def unaligned(shape, dtype):
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return np.zeros(size + 1, "u1")[1:].view(dtype).reshape(shape)


def unaligned_column(shape, dtype):
    size = np.dtype(dtype).itemsize
    record = {"names": ["key", "number"], "formats": ["u1", dtype], "offsets": [0, 1], "itemsize": 2 * size}
    return np.zeros(shape, record)["number"]


def packed_column(shape, dtype):
    """The stride of elements of several bytes is no multiple of their size."""
    return np.zeros(shape, [("key", "u1"), ("number", dtype)])["number"]


LAYOUTS = [contiguous, fortran, turned, every_other, backwards, part, column, unaligned, unaligned_column]


def numbers(shape, dtype, first):
    return (np.arange(first, first + math.prod(shape)) % 120).reshape(shape).astype(dtype)


def filled(layout, shape, dtype, first):
    array = layout(shape, dtype)
    assert array.shape == shape
    array[...] = numbers(shape, dtype, first)
    return array


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_element_of_a_message_finds_its_place(stage, shape):
    layouts = [*LAYOUTS, packed_column]
    cases = list(itertools.product(DTYPES, layouts, layouts))

    def sender(instance):
        while instance.reuse():
            for number, (dtype, layout, _) in enumerate(cases):
                instance.send("out", filled(layout, shape, dtype, number), timestamp=number)

    def receiver(instance):
        while instance.reuse():
            for number, (dtype, layout, room) in enumerate(cases):
                array = room(shape, dtype)
                instance.receive_into("in", array)
                case = f"{dtype}: {layout.__name__} to {room.__name__}"
                np.testing.assert_array_equal(array, numbers(shape, dtype, number), case)

    stage.play(sender, receiver)


def inner(array):
    """An array without its outermost elements."""
    return array[(slice(1, -1),) * array.ndim]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", SHAPES[1:], ids=str)
def test_each_element_of_a_field_finds_its_place(stage, shape, order):
    """The arrays of the receiver have a halo, which is not written."""
    cases = list(itertools.product(LAYOUTS, LAYOUTS))
    with_halo = tuple(extent + 2 for extent in shape)

    def sender(instance):
        field = instance.field("out", shape, DTYPES, order=order)
        while instance.reuse():
            for number, (layout, _) in enumerate(cases):
                field.send(*(filled(layout, shape, dtype, number) for dtype in DTYPES), timestamp=number)

    def receiver(instance):
        field = instance.field("in", shape, DTYPES, halo=1, order=order)
        while instance.reuse():
            for number, (layout, room) in enumerate(cases):
                arrays = [room(with_halo, dtype) for dtype in DTYPES]
                field.receive(*arrays)
                for array, dtype in zip(arrays, DTYPES):
                    expected = np.zeros(with_halo, dtype)
                    inner(expected)[...] = numbers(shape, dtype, number)
                    case = f"{dtype}: {layout.__name__} to {room.__name__}"
                    np.testing.assert_array_equal(array, expected, case)

    stage.play(sender, receiver)


def two_conduits():
    model = pair()
    model.conduit("sender.spare", "receiver.other")
    return model


@pytest.mark.parametrize("strides", [(8, 8), (0, 8), (0, 0), (-16, 8), (8, 16), (24, 8)], ids=str)
def test_elements_that_share_memory_are_sent_and_not_received_into(stage, strides):
    def overlapping():
        return as_strided(np.arange(40.0)[20:], (3, 4), strides)

    def sender(instance):
        field = instance.field("spare", (3, 4), float)
        while instance.reuse():
            instance.send("out", overlapping(), timestamp=0.0)
            field.send(overlapping(), timestamp=0.0)

    def receiver(instance):
        field, got = instance.field("other", (3, 4), float), []
        while instance.reuse():
            for receive in (partial(instance.receive_into, "in"), field.receive):
                target = overlapping()
                with pytest.raises(titin.UsageError, match="elements that share memory"):
                    receive(target)
                np.testing.assert_array_equal(target, overlapping())
                # The message is there still.
                got.append(np.zeros((3, 4)))
                receive(got[-1])
        return got

    for got in stage.play(sender, receiver, two_conduits())["receiver"]:
        np.testing.assert_array_equal(got, overlapping())


def test_elements_that_share_some_of_their_bytes_are_not_received_into(stage):
    def sender(instance):
        while instance.reuse():
            instance.send("out", np.ones(3), timestamp=0.0)

    def receiver(instance):
        while instance.reuse():
            with pytest.raises(
                titin.UsageError, match=r"extents \[3\] and strides of \[4\] bytes has elements that share"
            ):
                instance.receive_into("in", np.ndarray(3, "f8", np.zeros(2), strides=(4,)))
            instance.receive_into("in", got := np.zeros(3))
        return got

    assert stage.play(sender, receiver)["receiver"].all()


def columns():
    record = np.zeros(6, [("key", "u1"), ("x", float), ("y", float), ("z", float), ("rest", "V7")])
    return record["x"], record["z"]


def sharing(*parts):
    whole = np.zeros(12)
    return [whole[part] for part in parts]


def halves(begin, end):
    whole = np.zeros((3, 4))
    return whole[:, :begin], whole[:, end:]


@pytest.mark.parametrize(
    ("shape", "arrays", "serves"),
    [
        (6, columns, True),
        (6, lambda: sharing(slice(0, 6), slice(6, 12)), True),
        (6, lambda: np.zeros((6, 2)).T, True),
        (6, lambda: np.zeros((2, 6))[:, ::-1], True),
        (6, lambda: [np.zeros(6)] * 2, False),
        (6, lambda: sharing(slice(0, 6), slice(5, 11)), False),
        (6, lambda: sharing(slice(0, 6), slice(10, 4, -1)), False),
        (6, lambda: sharing(slice(0, 12, 2), slice(1, 12, 2)), True),
        (6, lambda: sharing(slice(0, 12, 2), slice(4, 10)), False),
        ((3, 2), lambda: halves(2, 2), True),
        ((3, 3), lambda: halves(3, 1), False),
    ],
)
def test_arrays_of_a_field_are_received_into_memory_of_their_own(stage, shape, arrays, serves):
    sent = [numbers((math.prod(np.atleast_1d(shape)),), float, first).reshape(shape) for first in (10, 50)]

    def sender(instance):
        field = instance.field("out", shape, [float, float])
        while instance.reuse():
            field.send(*sent, timestamp=0.0)

    def receiver(instance):
        field, room = instance.field("in", shape, [float, float]), arrays()
        while instance.reuse():
            if not serves:
                with pytest.raises(titin.UsageError, match="arrays 0 and 1, which count from 0, share memory"):
                    field.receive(*room)
                room = [np.zeros(shape), np.zeros(shape)]
            field.receive(*room)
        return room

    np.testing.assert_array_equal(stage.play(sender, receiver)["receiver"], sent)


def test_columns_of_packed_records_are_no_arrays_of_a_field(stage):
    sent = np.arange(6.0)

    def sender(instance):
        field = instance.field("out", 6, float)
        while instance.reuse():
            packed = filled(packed_column, (6,), float, 0)
            with pytest.raises(titin.UsageError, match=r"a stride of 9 bytes, .*packed records: give a copy"):
                field.send(packed, timestamp=0.0)
            field.send(packed.copy(), timestamp=0.0)

    def receiver(instance):
        field, packed = instance.field("in", 6, float), packed_column((6,), float)
        while instance.reuse():
            with pytest.raises(titin.UsageError, match=r"a stride of 9 bytes, .*packed records: give a copy"):
                field.receive(packed)
            field.receive(got := packed.copy())
        return got

    np.testing.assert_array_equal(stage.play(sender, receiver)["receiver"], sent)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("halo", [0, 1])
def test_a_flat_array_stands_for_the_part_of_a_rank(stage, order, halo):
    sent = numbers((3, 4), float, 1)
    with_halo = (3 + 2 * halo, 4 + 2 * halo)
    count = math.prod(with_halo)

    def refused(call, shape, told):
        with pytest.raises(titin.Error) as raised:
            call(np.zeros(shape))
        assert all(text in str(raised.value) for text in told), raised.value

    def check(call):
        room = f"one of shape {with_halo}, halo and all, or a flat and contiguous one of {count} elements"
        for shape in [count - 1, count + 1, (1, 1, count), (1, *with_halo)]:
            given = shape if isinstance(shape, tuple) else f"({shape},)"
            refused(call, shape, [f"argument 1 has the shape {given};", room])
        with pytest.raises(titin.TypeMismatch, match=rf"\({count},\), with gaps;"):
            call(np.zeros(2 * count)[::2])
        refused(call, with_halo[::-1], [" × ".join(map(str, with_halo)), " × ".join(map(str, with_halo[::-1]))])

    def sender(instance):
        field = instance.field("out", (3, 4), float, owned=Grid((1, 1)), halo=halo, order=order)
        array = np.zeros(with_halo)
        array[halo : 3 + halo, halo : 4 + halo] = sent
        while instance.reuse():
            check(partial(field.send, timestamp=0.0))
            field.send(array.ravel(order), timestamp=0.0)

    def receiver(instance):
        field = instance.field("in", (3, 4), float, owned=Grid((1, 1)), halo=halo, order=order)
        while instance.reuse():
            check(field.receive)
            field.receive(got := np.zeros(count))
        return got

    got = stage.play(sender, receiver)["receiver"].reshape(with_halo, order=order)
    np.testing.assert_array_equal(got[halo : 3 + halo, halo : 4 + halo], sent)
    assert np.count_nonzero(got) == 12


def test_several_boxes_are_flat(stage):
    boxes = Boxes([np.s_[0:1, 0:4], np.s_[1:3, 0:4]])

    def sender(instance):
        field = instance.field("out", (3, 4), float, owned=boxes)
        while instance.reuse():
            with pytest.raises(
                titin.TypeMismatch, match=r"has the shape \(3, 4\); on this rank give a flat and contig.* of 12 el"
            ):
                field.send(np.zeros((3, 4)), timestamp=0.0)
            field.send(np.arange(12.0), timestamp=0.0)

    def receiver(instance):
        field, got = instance.field("in", (3, 4), float), np.zeros((3, 4))
        while instance.reuse():
            field.receive(got)
        return got

    np.testing.assert_array_equal(stage.play(sender, receiver)["receiver"], np.arange(12.0).reshape(3, 4))
