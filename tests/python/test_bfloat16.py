"""bfloat16: filters and programs convert it as ml_dtypes does. Without ml_dtypes an error says what to install."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from .conftest import pair

bfloat16 = np.dtype(ml_dtypes.bfloat16)

#: Signalling patterns that are no numbers make NumPy warn.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")


def converted(stage, array, dtype):
    """The result of the filter `astype` for an array."""

    def sender(instance):
        while instance.reuse():
            instance.send("out", array, timestamp=0.0)

    def receiver(instance):
        received = None
        while instance.reuse():
            received = instance.receive("in").data.copy()
        return received

    return stage.play(sender, receiver, pair(f"astype({dtype})"))["receiver"]


def same(found, wanted):
    assert found.dtype == wanted.dtype
    numbers = ~np.isnan(wanted.astype(np.float64))
    np.testing.assert_array_equal(np.isnan(found.astype(np.float64)), ~numbers)
    bits = f"u{found.itemsize}"
    np.testing.assert_array_equal(found.view(bits)[numbers], wanted.view(bits)[numbers])


def test_every_pattern_is_the_float32_that_it_stands_for(stage):
    patterns = np.arange(1 << 16, dtype=np.uint16).view(bfloat16)
    same(converted(stage, patterns, "float32"), patterns.astype(np.float32))


def test_float32_is_rounded_to_the_nearest_and_to_even(stage):
    random = np.random.default_rng(5)
    bits = [random.integers(0, 1 << 32, 1 << 18, dtype=np.uint32)]
    # Between two neighbours: just below the middle, the middle, and just above.
    upper = random.integers(0, 0x7F00, 1 << 14, dtype=np.uint32) << 16
    bits += [upper | low for low in (0x7FFF, 0x8000, 0x8001, 0xFFFF)]
    wide = np.concatenate(bits).view(np.float32)
    narrow = wide.astype(bfloat16)
    # The filter refuses finite numbers beyond bfloat16's range; ml_dtypes makes them infinite.
    fits = np.isfinite(narrow.astype(np.float32)) | ~np.isfinite(wide)
    assert fits.sum() > 300_000
    same(converted(stage, wide[fits], "bfloat16"), narrow[fits])


SENDER = """
import ml_dtypes
import numpy as np
import titin

with titin.Instance(o_i=["out", "spare"]) as instance:
    while instance.reuse():
        instance.send("out", np.ones(3, ml_dtypes.bfloat16), timestamp=0.0)
"""

RECEIVER = """
import sys

sys.modules["ml_dtypes"] = None
import titin

with titin.Instance(s=["in", "other"]) as instance:
    while instance.reuse():
        try:
            instance.receive("in").data
        except titin.TypeMismatch as error:
            print(error)
"""


def test_without_ml_dtypes_the_error_says_what_to_install(stage):
    stage.run(pair(), sender=SENDER, receiver=RECEIVER)
    assert "an array of bfloat16, which NumPy does not have: install the package ml_dtypes" in stage.output()
