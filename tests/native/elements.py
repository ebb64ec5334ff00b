#!/usr/bin/env python3
""" "left" sends three elements of every type, "right" reads them: the script of elements.cpp."""

import sys

import ml_dtypes  # noqa: F401, as NumPy has no bfloat16 without it
import numpy as np
import titin


def sample(dtype: np.dtype) -> np.ndarray:
    """Three elements of a type, the same in all languages."""
    if dtype.kind == "b":
        return np.array([True, False, True])
    if dtype.kind in "iu":
        far = np.iinfo(dtype)
        return np.array([1, far.min or far.max, 3], dtype)
    return np.array([0.5 - 2j, -1.5, 3j] if dtype.kind == "c" else [0.5, -1.5, 3], dtype)


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether two arrays are equal in elements and type."""
    return found.dtype == wanted.dtype and found.tolist() == wanted.tolist()


def left(instance: titin.Instance) -> None:
    """Sends elements of every type."""
    for code in [*"?bhiqBHIQefdFD", "bfloat16"]:
        elements = sample(np.dtype(code))
        instance.send("out", elements, timestamp=0)
        loan = instance.loan("out", 3, code)
        loan[:] = elements
        instance.send("out", loan, timestamp=0)
        numbers = {} if code in ("F", "D") else {"number": elements[0], "list": list(elements)}
        instance.send("out", {"array": elements, **numbers}, timestamp=0)
    instance.send("out", timestamp=0)


def right(instance: titin.Instance) -> None:
    """Receives elements of every type."""
    known = 0
    while (first := instance.receive("in").data) is not None:
        wanted = sample(first.dtype)
        assert same(first, wanted)
        into = np.zeros_like(wanted)
        instance.receive_into("in", into)
        assert same(into, wanted)
        last = instance.receive("in").data
        assert same(last["array"], wanted)
        if wanted.dtype.kind != "c" and "number" in last:
            assert [last["number"], *last["list"]] == [wanted[0].item(), *wanted.tolist()]
            plain = wanted[0] if wanted.dtype == np.float32 else wanted[0].item()
            assert type(last["number"]) is type(plain)
        known += 1
    assert known >= 9


with titin.Instance(o_i="out", s="in") as instance:
    while instance.reuse():
        (left if sys.argv[1] == "left" else right)(instance)
