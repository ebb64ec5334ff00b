#!/usr/bin/env python3
"""Logistic growth in each cell by itself: the fast model of the pair."""

import titin

with titin.Instance(f_init=["initial_state"], o_f=["final_state"]) as instance:
    while instance.reuse():
        # F_INIT
        k = instance.setting("k", float)
        dt, t_max = instance.setting("dt", float), instance.setting("t_max", float)
        msg = instance.receive("initial_state")
        u = msg.data.copy()

        # S
        for _ in range(round(t_max / dt)):
            u += dt * k * u * (1.0 - u)

        # O_F
        instance.send("final_state", u, timestamp=msg.timestamp + t_max)
