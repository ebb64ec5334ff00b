"""Data of every element type, shape and order from a Python program through a ComplexData of C++ and back."""

from __future__ import annotations

from .conftest import Build, run

PYTHON = """
import itertools
import numpy as np
import titin

TYPES = {"bool": 0, "int8": 1, "uint8": 1, "int16": 2, "int32": 3, "int64": 4, "float32": 5, "float64": 6}
NONE = ["uint16", "uint32", "uint64", "float16", "complex64", "complex128"]
FIRST = [4, 12, 19, 26, 33]  # COMPLEX_BOOLEAN and so on, by the number of dimensions
random = np.random.default_rng(7)
failed = []


def orders(array):
    yield array
    yield np.asfortranarray(array)
    yield np.swapaxes(array, 0, -1) if array.ndim > 1 else array
    yield np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
    yield array[::-1] if array.ndim else array


def ask(data):
    instance.send("out", data, timestamp=0.0)
    return instance.receive("what").data


def exact(array, said, back, kind):
    # An array of bytes is MUSCLE_RAW on its way back.
    wanted = f"{FIRST[array.ndim] + kind} {' '.join(map(str, array.shape))}".strip()
    if kind == 1 and array.ndim == 1:
        return said == wanted and bytes(back) == array.tobytes()
    back = np.asarray(back)
    return said == wanted and back.shape == array.shape and back.tobytes() == array.tobytes()


with titin.Instance(o_i=["out"], s=["what", "back"]) as instance:
    while instance.reuse():
        count = 0
        for (name, kind), shape in itertools.product(
            TYPES.items(), [(), (0,), (1,), (7,), (3, 4), (0, 5), (2, 3, 4), (2, 0, 3), (2, 1, 3, 2), (1, 1, 1, 1)]
        ):
            bits = random.integers(0, 2 if name == "bool" else 256, (*shape, np.dtype(name).itemsize), np.uint8)
            for array in orders(bits.view(name)[..., 0]):
                said = ask(array)
                if not exact(array, said, instance.receive("back").data, kind):
                    failed.append((name, array.shape, array.strides, said))
                count += 1
        for name, shape in itertools.product(NONE, [(), (2,), (2, 2)]):
            assert "MUSCLE 2 has no type for what has come (port 'in'" in ask(np.zeros(shape, name)), (name, shape)
        for data in [np.zeros((1,) * 5), [1, "a"], {"a": 1}, [], 2**64 - 1]:
            assert "MUSCLE 2 has no type" in ask(data), data
        for data, what in [
            (None, "0"), ("", "3"), ("a\\0b", "3"), ("gr\\xfc\\u00dfe" * 9999, "3"),
            (True, "4"), (-(2**63), "8"), (0.1, "10"),
        ]:
            assert ask(data) == what, data
            back = instance.receive("back").data
            assert back == (data.split("\\0")[0] if isinstance(data, str) else data), (data, back)
        for data in [b"", b"\\0\\xff" * 5]:
            assert ask(data) == f"13 {len(data)}"
            assert bytes(instance.receive("back").data) == data
        print(count, failed)
"""


def test_each_type_and_shape_comes_back_as_it_went(build: Build, tmp_path):
    (tmp_path / "macro.py").write_text(PYTHON)
    ends = (
        "      macro: {description: a, ports: {o_i: out, s: [what, back]}, implementation: macro}\n"
        "      peer: {description: a, ports: {o_i: [what, back], s: in}, implementation: peer}\n"
    )
    conduits = "{macro.out: peer.in, peer.what: macro.what, peer.back: macro.back}"
    programs = {"macro": str(tmp_path / "macro.py"), "peer": build("shapes.cpp")}
    end = run(tmp_path, ends, conduits, programs, more="    matching_timelines: {macro: peer}\n")
    assert (end.code, end.printed("macro")) == (0, "400 []\n"), end.said
