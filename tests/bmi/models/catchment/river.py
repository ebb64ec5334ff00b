"""A river that gathers the water of 3 by 4 cells of a square kilometre."""

from __future__ import annotations

import numpy as np
from base import Base


class River(Base):
    """Its discharge is a single number."""

    inputs = ("land_water__runoff_rate",)
    outputs = ("channel_water__discharge",)
    spacing = 1000.0

    def begin(self):
        self.add("land_water__runoff_rate", np.zeros((3, 4)), "m s-1")
        self.add("channel_water__discharge", np.zeros(()), "m3 s-1", grid=1)

    def solve(self, step):
        discharge = self.arrays["channel_water__discharge"]
        discharge += step / 7200 * (self.arrays["land_water__runoff_rate"].sum() * 1e6 - discharge)
