"""A bar that conducts heat, in two halves: `bar.py left ADDRESS` listens, and `bar.py right ADDRESS` opens the path."""

import sys

import numpy as np
from titin.path import Path, PathListener

CELLS, STEPS = 50, 2000

half, address = sys.argv[1:]
left = half == "left"
with PathListener(address).accept() if left else Path(address, "bar") as path:
    # Cells 1 to CELLS are this half's; the first and the last are its neighbours'. The left end is hot.
    u = np.zeros(CELLS + 2)
    if left:
        u[0] = 100
    own, other = (slice(-2, -1), slice(-1, None)) if left else (slice(1, 2), slice(0, 1))
    for _ in range(STEPS):
        u[other] = path.exchange(u[own])
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
for cell in u[1:-1]:
    print(repr(float(cell)))
