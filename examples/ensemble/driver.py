#!/usr/bin/env python3
"""Runs an ensemble: each member has its own rate of growth, sent along with its state as a settings overlay."""

import numpy as np
import titin

with titin.Instance(o_i=["states_out[]"], s=["states_in[]"], o_f=["statistics"]) as instance:
    while instance.reuse():
        # F_INIT
        dt, t_max = instance.setting("dt", float), instance.setting("t_max", float)
        members = instance.port("states_out").slots
        places, weights = np.polynomial.hermite_e.hermegauss(members)
        weights /= weights.sum()
        rates = instance.setting("k_mean", float) + instance.setting("k_spread", float) * places
        u = np.full((members, 1), instance.setting("u_start", float))

        statistics = []
        for step in range(round(t_max / dt)):
            # O_I
            t = step * dt
            for slot, k in enumerate(rates):
                instance.send("states_out", u[slot], timestamp=t, slot=slot, settings={"k": float(k)})

            # S
            for slot in range(members):
                u[slot] = instance.receive("states_in", slot=slot).data
            mean = weights @ u[:, 0]
            spread = np.sqrt(weights @ (u[:, 0] - mean) ** 2)
            statistics.append((t + dt, mean, spread))

        # O_F
        instance.send("statistics", np.array(statistics), timestamp=t_max)
