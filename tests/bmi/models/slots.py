"""Models whose ports have slots, and the models of which there are several at the other end."""

from __future__ import annotations

import numpy as np
from base import Base


class Basin(Base):
    """Three pools of water that flow into each other: an array with a number for each pool."""

    inputs = ("basin__inflow",)
    outputs = ("basin__level",)

    def begin(self):
        self.add("basin__level", np.array([1.0, 2.0, 4.0]), "m")
        self.add("basin__inflow", np.full(3, 0.25), "m s-1")
        self.shapes[0] = (3,)

    def solve(self, step):
        level = self.arrays["basin__level"]
        level += step * (self.arrays["basin__inflow"] + 0.1 * (level.mean() - level))


class Pool(Base):
    """What one pool gets from its shores."""

    inputs = ("pool__level",)
    outputs = ("pool__inflow",)

    def begin(self):
        self.add("pool__level", np.zeros(()), "m")
        self.add("pool__inflow", np.zeros(()), "mm s-1")

    def solve(self, step):
        self.arrays["pool__inflow"][...] = 1000 * (0.5 - 0.01 * self.arrays["pool__level"] * self.time)


class Stack(Base):
    """Two layers of three by four nodes, each with a flux from elsewhere."""

    inputs = ("stack__flux",)
    outputs = ("stack__head",)

    def begin(self):
        self.add("stack__head", np.arange(24.0).reshape(2, 3, 4), "m")
        self.add("stack__flux", np.zeros((2, 3, 4)), "m s-1")

    def solve(self, step):
        head = self.arrays["stack__head"]
        head += step * (self.arrays["stack__flux"] + 0.01 * (head[::-1] - head))


class Layer(Base):
    """The flux of one layer."""

    inputs = ("layer__head",)
    outputs = ("layer__flux",)

    def begin(self):
        self.add("layer__head", np.zeros((3, 4)), "m")
        self.add("layer__flux", np.zeros((3, 4)), "m s-1")

    def solve(self, step):
        self.arrays["layer__flux"][...] = 0.1 * (10.0 - self.arrays["layer__head"])
