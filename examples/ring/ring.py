#!/usr/bin/env python3
"""Writes the description of a ring of instances: a hundred components and two hundred conduits, from a few lines.

python ring.py build/ring.ymmsl
"""

import math
import sys

from titin.model import Model

CELLS, WAVES, A, STEPS = 100, 3, 0.25, 200


def start(i):
    """Temperature of a cell at the beginning: some whole waves around the ring."""
    return math.cos(2.0 * math.pi * WAVES * i / CELLS)


def ring():
    model = Model("ring", "heat in a ring of cells, an instance a cell")
    model.program("cell", "./cell", description="one cell of the ring")
    cells = model.ring("cell", CELLS, "cell", description="one cell")
    model.settings |= {"a": A, "steps": STEPS}
    for i, cell in enumerate(cells):
        model.settings[f"{cell.name}.u"] = start(i)
    return model


if __name__ == "__main__":
    ring().write(sys.argv[1])
