"""Arrays arrive as they were sent."""

from __future__ import annotations

import array
import ctypes
import gc
import sys
from itertools import product
from typing import Any

import ml_dtypes  # noqa: F401, as NumPy has no bfloat16 without it
import numpy as np
import pytest
import titin

from .conftest import pair

DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "bfloat16",
]


def numbers(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Numbers that are all different, if the type has so many values."""
    size = int(np.prod(shape))
    return (np.arange(size) % 100).astype(dtype).reshape(shape)


def check(received: np.ndarray[Any, Any], sent: np.ndarray[Any, Any]) -> None:
    assert type(received) is np.ndarray
    assert received.dtype == sent.dtype
    assert received.shape == sent.shape
    np.testing.assert_array_equal(received, sent)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("shape", [(), (5,), (3, 4), (2, 3, 4, 5)])
def test_every_dtype_rank_and_order(echo, dtype, order, shape):
    sent = np.asarray(numbers(dtype, shape), order=order)
    received = echo(sent).data
    check(received, sent)
    assert received.flags.c_contiguous == sent.flags.c_contiguous
    assert received.flags.f_contiguous == sent.flags.f_contiguous


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3, 2)])
def test_empty_arrays_keep_their_shape(echo, shape):
    check(echo(np.zeros(shape, "f4")).data, np.zeros(shape, "f4"))


def test_all_ranks_that_numpy_and_titin_share(echo):
    for rank in range(33):
        sent = numbers("i4", (1,) * rank)
        check(echo(sent).data, sent)


def test_a_rank_beyond_is_refused(echo):
    with pytest.raises(titin.Error, match="33"):
        echo(np.zeros((1,) * 33))


@pytest.mark.parametrize(
    "cut",
    [np.s_[::2], np.s_[::-1], np.s_[:, 1], np.s_[..., ::3], np.s_[1:3, ::-2, :2], np.s_[None, :, :, 0]],
)
def test_slices_are_packed(echo, cut):
    sent = numbers("f8", (6, 5, 4))[cut]
    check(echo(sent).data, sent)


def test_transposed_and_broadcast(echo):
    sent = numbers("i2", (3, 4, 5)).transpose(1, 2, 0)
    check(echo(sent).data, sent)
    sent = np.broadcast_to(numbers("u1", (1, 4)), (3, 4))
    check(echo(sent).data, sent)


@pytest.mark.parametrize("code", "bBhHiIlLqQefdFD?")
@pytest.mark.parametrize("dims", [1, 4, 5])
def test_every_code_of_numpy_aligned_or_not(echo, code, dims):
    """Covers C's types, several of which are one type of titin. Up to four dimensions take another way than more
    dimensions."""
    sent = numbers(code, (2, 3, 1, 2, 1)[:dims])
    memory = bytearray(b"x" + sent.tobytes())
    shifted = np.frombuffer(memory, code, offset=1).reshape(sent.shape)
    for given in (sent, shifted, np.asfortranarray(shifted), shifted[::-1], shifted[:, :0] if dims > 1 else shifted):
        received = echo(given).data
        check(received, given.astype(received.dtype))
        assert received.dtype.itemsize == sent.itemsize and received.dtype.kind == sent.dtype.kind
        assert received.flags.aligned and not received.flags.writeable


@pytest.mark.parametrize("dtype", [">i2", ">u8", ">f4", ">f8", ">c16", ">f2"])
def test_the_other_byte_order_is_swapped(echo, dtype):
    sent = numbers(dtype, (3, 4))
    received = echo(sent).data
    assert received.dtype == sent.dtype.newbyteorder("=")
    np.testing.assert_array_equal(received, sent)


@pytest.mark.parametrize(
    ("data", "hint"),
    [
        (np.array([object()]), "list or a dict"),
        (np.array(["text"]), "tolist"),
        (np.array([b"text"]), "tolist"),
        (np.array(["2020-01-01"], "M8[D]"), "timedelta64"),
        (np.array([1], "m8[s]"), "timedelta64"),
        (np.datetime64("2020-01-01"), "timedelta64"),
        (np.timedelta64(1, "s"), "timedelta64"),
        (np.zeros(3, [("a", "f8"), ("b", "i4")]), "dict of arrays"),
        (np.zeros(3, np.longdouble), "float64"),
        (np.zeros(3, np.clongdouble), "complex128"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "filled"),
    ],
    ids=[
        "objects",
        "text",
        "bytes",
        "dates",
        "durations",
        "date",
        "duration",
        "records",
        "longdouble",
        "clongdouble",
        "masked",
    ],
)
def test_other_dtypes_are_refused_with_a_hint(echo, data, hint):
    with pytest.raises(titin.TypeMismatch, match=hint):
        echo(data)
    with pytest.raises(TypeError, match=hint):
        echo({"nested": [data]})
    # The port works as before.
    assert echo(1).data == 1


def test_what_was_received_is_read_only(echo):
    received = echo(np.zeros((2, 3))).data
    assert not received.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        received[0, 0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        received.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        received.reshape(6)[0] = 1.0
    with pytest.raises(TypeError, match="not writable"):
        (ctypes.c_char * received.nbytes).from_buffer(received)
    assert memoryview(received).readonly


def test_received_arrays_are_not_copied_and_are_aligned(echo):
    message = echo(np.zeros(1000))
    assert message.data is message.data
    assert message.data.ctypes.data % 64 == 0
    assert not message.data.flags.owndata


def test_the_sender_may_change_its_array(echo):
    for size in (1, 1000, 1_000_000):
        sent = np.ones(size)
        message = echo(sent)
        sent[:] = 2.0
        assert message.data.min() == message.data.max() == 1.0


def test_objects_with_a_buffer(echo):
    check(echo(memoryview(numbers("f8", (3, 4)))).data, numbers("f8", (3, 4)))
    check(echo(array.array("d", [1.0, 2.0])).data, np.array([1.0, 2.0]))
    check(echo(memoryview(b"abc")).data, np.frombuffer(b"abc", "u1"))
    check(echo(memoryview(bytearray(8)).cast("q")).data, np.zeros(1, "i8"))
    assert echo(b"abc").data == b"abc"
    assert echo(bytearray(b"abc")).data == b"abc"


class Tensor:
    """An array with DLPack only, like the tensors of torch or cupy."""

    def __init__(self, data: np.ndarray[Any, Any], device: int) -> None:
        self.data, self.device = data, device

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.data.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


@pytest.mark.parametrize("device", [1, 3, 11, 13], ids=["cpu", "pinned for CUDA", "pinned for ROCm", "managed"])
def test_dlpack_in_host_memory(echo, device):
    sent = numbers("f4", (3, 4))
    check(echo(Tensor(sent, device)).data, sent)
    check(echo({"nested": Tensor(sent, device)}).data["nested"], sent)


@pytest.mark.parametrize(("device", "name"), [(2, "CUDA"), (10, "ROCm"), (14, "oneAPI"), (-3, "unknown")])
def test_dlpack_on_a_device_is_refused(echo, device, name):
    """Without a look at the memory, which the host cannot read."""

    class Away(Tensor):
        def __dlpack__(self, **arguments: Any) -> Any:
            raise AssertionError("asked for its memory")

    text = rf"cannot send .*Away.* of a device \({name}, DLPack device type {device}, number 0\); copy it .*\.cpu\(\)"
    for data in (Away(numbers("f4", (3, 4)), device), {"nested": Away(numbers("f4", (3, 4)), device)}):
        with pytest.raises(titin.TypeMismatch, match=text):
            echo(data)


def test_a_received_array_is_read_only_by_dlpack_too(echo):
    """Versioned capsules say so by a flag; a library that does not know them gets no array that it might change."""
    received = echo(numbers("f8", (300, 4))).data
    assert received.__dlpack_device__() == (1, 0)
    capsule = received.__dlpack__(max_version=(1, 0))
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    # After the version, the context and the deleter.
    flags = ctypes.c_uint64.from_address(pointer(capsule, b"dltensor_versioned") + 24).value
    assert flags & 1
    seen = np.from_dlpack(received)
    assert np.shares_memory(seen, received) and not seen.flags.writeable
    with pytest.raises(BufferError, match="readonly"):
        received.__dlpack__()


class Interface:
    """An array with the array interface only, like the arrays of older libraries."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data
        self.__array_interface__ = data.__array_interface__


class Convertible:
    """An array like a column of pandas."""

    def __init__(self, data: np.ndarray[Any, Any]) -> None:
        self.data = data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.data


def test_other_interfaces_of_arrays(echo):
    sent = numbers("i4", (4, 3))[::2]
    check(echo(Interface(sent)).data, sent)
    check(echo(Convertible(sent)).data, sent)


def test_subclasses_of_arrays(echo):
    class Sub(np.ndarray):
        pass

    check(echo(numbers("f8", (3,)).view(Sub)).data, numbers("f8", (3,)))


def test_index_names_go_with_an_array(echo):
    sent = titin.Array(numbers("f8", (3, 4)), names=("x", "y"))
    received = echo(sent).data
    assert isinstance(received, titin.Array)
    assert received.names == ("x", "y")
    np.testing.assert_array_equal(received, sent)
    assert not received.flags.writeable
    nested = echo({"a": [sent]}).data["a"][0]
    assert nested.names == ("x", "y")
    assert received[0].names is None
    assert received.copy().names is None
    check(echo(sent[1:]).data, np.asarray(sent[1:]))


def test_names_must_fit_the_rank():
    with pytest.raises(ValueError, match="1 index names for an array of rank 2"):
        titin.Array(np.zeros((2, 2)), names=["x"])


def test_objects_without_data_are_refused(echo):
    for thing in (object(), {1, 2}, range(3), print):
        with pytest.raises(titin.TypeMismatch, match="send a number, text, bytes, None, an array"):
            echo(thing)


def test_arrays_that_are_sent_are_let_go(echo):
    sent = np.zeros(10)
    before = sys.getrefcount(sent)
    for data in (sent, {"a": sent}, [sent, sent[::2]]):
        echo(data)
    with pytest.raises(titin.TypeMismatch):
        echo([sent, object()])
    del data
    gc.collect()
    assert sys.getrefcount(sent) <= before + 1


def test_many_shapes_at_random(echo):
    random = np.random.default_rng(1)
    for dtype, _ in product(DTYPES, range(5)):
        shape = tuple(random.integers(1, 6, size=random.integers(1, 6)))
        sent = numbers(dtype, shape).transpose(random.permutation(len(shape)))
        cut = tuple(slice(None, None, random.choice([-2, -1, 1, 2])) for _ in shape)
        check(echo(sent[cut]).data, sent[cut])


SENDS_A_FILE = """
import os
import numpy as np
import titin

with open("mapped", "wb") as file:
    file.truncate(50_000_000)
mapped = np.memmap("mapped", dtype="u1", mode="r")
with titin.Instance(o_i=["out", "spare"]) as instance:
    while instance.reuse():
        os.truncate("mapped", {left})
        instance.send("out", mapped, timestamp=0.0)
"""

RECEIVES = """
import titin

with titin.Instance(s=["in", "other"]) as instance:
    while instance.reuse():
        instance.receive("in")
"""


@pytest.mark.parametrize("left", [0, 20_000_000], ids=["nothing", "a part"])
def test_memory_that_cannot_be_read_fails_its_sender(stage, left):
    """Plays a mapped file on a failing disk: the system refuses the memory before or after a part of it has been sent.

    The messages go over tcp, where the system reads the memory. With shared memory the sender itself would read the
    file, and be killed.
    """
    process = stage.launch(
        pair(), "medium: {receiver.in: tcp}", sender=SENDS_A_FILE.format(left=left), receiver=RECEIVES
    )
    output = process.communicate()[0]
    assert process.returncode == 1, output
    assert "First:    sender reported an error" in output
    assert "the memory that is to be sent cannot be read" in stage.output()
    assert "Bad address" in stage.output()


def test_index_names_are_sent_by_who_has_sent_plain_arrays_before(stage):
    """titin checks for names only once the program has loaded the class `Array`. The class may be loaded after the
    first send."""
    sender = """
import sys
import numpy as np
import titin

with titin.Instance(o_i="out spare") as instance:
    while instance.reuse():
        instance.send("out", np.zeros(2), timestamp=0)
        assert "titin.data" not in sys.modules
        instance.send("out", titin.Array(np.zeros(2), names=("x",)), timestamp=1)
"""
    receiver = """
import titin

with titin.Instance(s="in other") as instance:
    while instance.reuse():
        assert getattr(instance.receive("in").data, "names", None) is None
        assert instance.receive("in").data.names == ("x",)
"""
    stage.run(pair(), sender=sender, receiver=receiver)
