"""Soil that lets water run off, on a grid of 3 by 4 cells."""

from __future__ import annotations

import numpy as np
from base import Base


class Soil(Base):
    """It rains in the first hours; what the soil does not hold runs off."""

    outputs = ("soil_water__runoff_rate",)
    time_units = "h"
    spacing = 1000.0

    def begin(self):
        self.store = np.linspace(0.0, 30.0, 12).reshape(3, 4)
        self.add("soil_water__runoff_rate", 0.1 * self.store, "mm h-1")

    def solve(self, step):
        self.store += step * (self.config["rain"] if self.time < 3 else 0.0)
        self.arrays["soil_water__runoff_rate"][:] = 0.1 * self.store
        self.store -= step * 0.1 * self.store
