#!/usr/bin/env python3
"""Writes the description of a crowd: a thousand instances in a ring that share one process.

python crowd.py c|python build/crowd.ymmsl
"""

import math
import sys

from titin.model import Model

CELLS, WAVES, A, STEPS = 1000, 3, 0.25, 20

HOSTED = {
    "c": {"host": "crowd", "library": "./libcell.so", "step": "cell"},
    "python": {"host": "crowd", "function": "cell:cell"},
}


def start(i):
    """Temperature of a cell at the beginning: some whole waves around the ring."""
    return math.cos(2.0 * math.pi * WAVES * i / CELLS)


def crowd(language):
    model = Model("crowd", "heat in a ring of cells, all in one process")
    model.program("cell", description="one cell of the ring", titin=HOSTED[language])
    cells = model.ring("cell", CELLS, "cell", description="one cell")
    model.settings |= {"a": A, "steps": STEPS}
    for i, cell in enumerate(cells):
        model.settings[f"{cell.name}.u"] = start(i)
    return model


if __name__ == "__main__":
    crowd(sys.argv[1]).write(sys.argv[2])
