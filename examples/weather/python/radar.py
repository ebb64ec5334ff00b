#!/usr/bin/env python3
"""Shows the latest rain again and again: the amount, and the mean column."""

import time

import numpy as np
import titin

with titin.Instance(s=["rain"]) as instance:
    ny, nx = instance.setting("ny", int), instance.setting("nx", int)
    pace = instance.setting("pace", float)
    rain = instance.field("rain", (ny, nx), float)
    u = np.empty((ny, nx))

    while instance.reuse():
        try:
            while True:
                # S: the latest version, until the weather has ended and its last version was taken.
                t, _ = rain.receive(u)
                print(f"{t:.17g} {u.sum():.17g} {(u @ np.arange(nx)).sum() / u.sum():.17g}")
                time.sleep(pace)
        except titin.PortClosed:
            pass
