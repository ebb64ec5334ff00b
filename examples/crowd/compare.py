#!/usr/bin/env python3
"""Compares the numbers that the cells have printed with the exact solution: python compare.py RUN_DIR"""

import math
import sys
from pathlib import Path

from crowd import CELLS, STEPS, WAVES, A, start

TOLERANCE = 1e-12


def main():
    lines = Path(sys.argv[1], "instances", "crowd", "stdout.txt").read_text().splitlines()
    u = {name: float(value) for name, value in (line.split() for line in lines)}
    # A wave around the ring keeps its shape; each step reduces its height by the same factor.
    height = (1.0 - 2.0 * A * (1.0 - math.cos(2.0 * math.pi * WAVES / CELLS))) ** STEPS
    error = max(abs(u[f"cell_{i}"] - start(i) * height) for i in range(CELLS))
    print(f"{len(u)} cells after {STEPS} steps: within {error:.1e} of the exact solution (allowed: {TOLERANCE})")
    return 0 if len(u) == CELLS and error <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
