#!/usr/bin/env python3
"""Writes the table of settings: a grid of rates and beginnings, and one row of nonsense."""

import os

from titin.sampling import grid, write

table = grid({"k": [0.5 + number / 9 for number in range(11)], "u": [0.01 * number for number in range(1, 10)]})
table["k"].append(-1.0)
table["u"].append(0.01)
os.makedirs("build", exist_ok=True)
write("build/table.csv", table)
