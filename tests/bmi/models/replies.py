"""What the other side of a model computes in a step: the same functions in a run and in the loop by hand."""

from __future__ import annotations

import numpy as np


def nothing(got, time):
    """For ports of which nobody reads the answer."""
    return


def half(got, time):
    """Half of what comes, and one, in the same precision."""
    return (got.dtype.type(0.5) * got + got.dtype.type(1)).astype(got.dtype)


def cooling(got, time):
    return 0.01 * (50.0 - got)


def mean_in_kelvin(got, time):
    """A map, as models with the Basic Model Interface send."""
    return {"data": float(np.mean(got)) + 280.0, "units": "K"}


def inflow_in_cubic_metres(got, time):
    return {"data": np.full(1, 0.02 + time / 1000), "units": "m3 s-1"}


def rain(got, time):
    return {"data": np.array([1.5, 2.5, 3.5], np.float32) * np.float32(got[0] + 1), "units": "cm"}


def seventeen(got, time):
    return np.full(17, got[0] + 1)


def odd(got, time):
    return (got % 2).astype(np.int32)


def flux_in_fortran_order(got, time):
    return np.asfortranarray(0.01 * got)


def in_centimetres_a_second(got, time):
    return {"data": np.full(got.shape, 200, np.float32), "units": "cm s-1"}


def as_many(got, time):
    return got + 1


def words(got, time):
    return "none of these"


def too_small(got, time):
    return np.zeros((2, 3))


def in_metres(got, time):
    return {"data": got, "units": "m"}


def in_furlongs(got, time):
    return {"data": got, "units": "furlong"}


def other_map(got, time):
    return {"values": got}


def real(got, time):
    return got * 0.5


def large(got, time):
    return np.full(got.shape, 2**40)


def nil_if_one(got, time):
    return None if got == 1 else float(got)


def nil(got, time):
    return None
