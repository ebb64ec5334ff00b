"""One of two programs whose ranks exchange pieces so large that the pieces travel in chunks.

`a RANKS WAY` sends to `b RANKS WAY`. The sender has rows of three arrays with different elements, and runs ahead. The
receiver has rows, too, or block-cyclic columns in Fortran's order.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import titin

SHAPE, STEPS = (1500, 1100), 3
DTYPES = ["f8", "i2", "f4"]

sends, count, rows = sys.argv[1] == "a", int(sys.argv[2]), sys.argv[3] == "rows"
comm = None
if count > 1:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
index = np.arange(SHAPE[0] * SHAPE[1]).reshape(SHAPE)

with titin.Instance(**{"o_i" if sends else "s": ["x"]}, comm=comm) as instance:
    instance.reuse()
    rank = instance.rank
    if sends or rows:
        owned = titin.Grid((count, 1), ["even", "even"])
        field = instance.field("x", shape=SHAPE, dtype=DTYPES, owned=owned)
        low, high = (SHAPE[0] * place // count for place in (rank, rank + 1))
        mine = index[low:high]
    else:
        owned = titin.Grid((1, count), ["even", ("cyclic", 7)])
        field = instance.field("x", shape=SHAPE, dtype=DTYPES, owned=owned, order="F")
        mine = index[:, np.arange(SHAPE[1]) // 7 % count == rank]
    for step in range(STEPS):
        expected = [(mine * (number + 3) + step).astype(dtype) for number, dtype in enumerate(DTYPES)]
        if sends:
            # A view of every other row of an array with twice as many rows.
            arrays = [np.repeat(array, 2, axis=0)[::2] for array in expected]
            field.send(*arrays, timestamp=float(step))
            continue
        if step == 0:
            time.sleep(0.5)
        arrays = [np.empty(mine.shape, dtype, order="C" if rows else "F") for dtype in DTYPES]
        assert field.receive(*arrays).timestamp == step
        for array, wanted in zip(arrays, expected, strict=True):
            assert np.array_equal(array, wanted), (step, array.dtype)
