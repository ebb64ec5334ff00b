#!/usr/bin/env python3
"""Logistic growth in each cell by itself, in a frame: the fast model of the pair."""

import titin


class Growth(titin.Submodel):
    f_init = "initial_state"
    o_f = "final_state"

    def init(self):
        self.k, self.dt = self.instance.setting("k", float), self.instance.setting("dt", float)
        message = self.instance.receive("initial_state")
        self.time, self.u = message.timestamp, message.data.copy()

    def solve(self):
        self.u += self.dt * self.k * self.u * (1.0 - self.u)
        self.time += self.dt

    def finish(self):
        self.instance.send("final_state", self.u, timestamp=self.time)


Growth().run()
