#!/usr/bin/env python3
"""Logistic growth of a population: a member of a study, which takes its settings from the sampler."""

import titin

with titin.Instance(f_init=["row"], o_f=["result"]) as instance:
    while instance.reuse():
        # F_INIT
        instance.receive("row")
        k, u = instance.setting("k", float), instance.setting("u", float)
        dt, t_max = instance.setting("dt", float), instance.setting("t_max", float)
        if k < 0.0:
            raise ValueError(f"a rate of growth of {k}")

        # S
        half = None
        for step in range(round(t_max / dt)):
            u += dt * k * u * (1.0 - u)
            if half is None and u > 0.5:
                half = (step + 1) * dt

        # O_F
        instance.send("result", {"population": u, "half": t_max if half is None else half}, timestamp=t_max)
