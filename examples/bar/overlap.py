"""The bar in two halves, whose exchange of the cells at the cut overlaps with the work on the other cells."""

import sys

import numpy as np
from titin.path import Path, PathListener

CELLS, STEPS = 50, 2000
left = sys.argv[1] == "left"
path = PathListener(sys.argv[2]).accept() if left else Path(sys.argv[2], "bar")

# Cells 1 to CELLS are this half's; the cells 0 and CELLS + 1 are its neighbours'. The left end is hot.
u = np.zeros(CELLS + 2)
u[0] = 100 if left else 0
own, other = (CELLS, CELLS + 1) if left else (1, 0)
with path:
    for _ in range(STEPS):
        neighbour = path.ireceive()
        send = path.isend(u[own : own + 1].copy())
        new = u[1:-1] + 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
        # The cell at the cut had an old neighbour.
        u[other] = neighbour.wait()[0]
        new[own - 1] = u[own] + 0.25 * (u[own - 1] - 2 * u[own] + u[own + 1])
        send.wait()
        u[1:-1] = new
for cell in u[1:-1]:
    print(format(cell, ".17g"))
