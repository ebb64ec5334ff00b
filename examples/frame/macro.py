#!/usr/bin/env python3
"""Diffusion along a line, in a frame: the slow, coarse model of the pair."""

import numpy as np
import titin


class Diffusion(titin.Submodel):
    o_i = "state_out"
    s = "state_in"
    o_f = "final_state"

    def init(self):
        d, dx = self.instance.setting("d", float), self.instance.setting("dx", float)
        self.dt = self.instance.setting("dt", float)
        self.u = np.zeros(self.instance.setting("cells", int))
        self.u[: len(self.u) // 10] = 1.0
        self.a = d * self.dt / (dx * dx)

    def observe(self):
        self.instance.send("state_out", self.u, timestamp=self.time, next_timestamp=self.time + self.dt)

    def solve(self):
        u = self.u = self.instance.receive("state_in").data.copy()
        u[1:-1] = u[1:-1] + self.a * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        u[0], u[-1] = u[1], u[-2]
        self.time += self.dt

    def finish(self):
        self.instance.send("final_state", self.u, timestamp=self.time)


Diffusion().run()
