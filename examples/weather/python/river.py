#!/usr/bin/env python3
"""The level of a river, in steps of its own length, each with the rain of its time on the catchment."""

import time

import numpy as np
import titin

with titin.Instance(s=["rain"]) as instance:
    ny, nx, steps = (instance.setting(name, int) for name in ("ny", "nx", "steps"))
    dt, k, pace = (instance.setting(name, float) for name in ("dt", "k", "pace"))
    catchment = titin.Boxes([np.s_[:ny, nx // 3 : 2 * nx // 3]])
    rain = instance.field("rain", (ny, nx), float, owned=catchment)
    u, level = np.empty((ny, 2 * nx // 3 - nx // 3)), 0.0

    while instance.reuse():
        for step in range(steps):
            # S: the rain at or before this time.
            t, _ = rain.receive(u, at=step * dt)
            level += dt * (u.sum() / u.size - k * level)
            print(f"{step * dt:.17g} {t:.17g} {level:.17g}")
            time.sleep(pace)
