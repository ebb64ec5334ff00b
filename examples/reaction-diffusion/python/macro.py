#!/usr/bin/env python3
"""Diffusion along a line: the slow, coarse model of the pair."""

import numpy as np
import titin

with titin.Instance(o_i=["state_out"], s=["state_in"], o_f=["final_state"]) as instance:
    while instance.reuse():
        # F_INIT
        d, dx = instance.setting("d", float), instance.setting("dx", float)
        dt, t_max = instance.setting("dt", float), instance.setting("t_max", float)
        u = np.zeros(instance.setting("cells", int))
        u[: len(u) // 10] = 1.0
        a = d * dt / (dx * dx)

        t = 0.0
        for step in range(round(t_max / dt)):
            # O_I
            t = step * dt
            instance.send("state_out", u, timestamp=t, next_timestamp=t + dt)

            # S
            u = instance.receive("state_in").data.copy()
            u[1:-1] = u[1:-1] + a * (u[:-2] - 2.0 * u[1:-1] + u[2:])
            u[0], u[-1] = u[1], u[-2]

        # O_F
        instance.send("final_state", u, timestamp=t + dt)
