#!/usr/bin/env python3
"""Follows one row of the plate: a serial program, which receives only that row."""

import numpy as np
import titin

with titin.Instance(f_init=["temperature"]) as instance:
    ny, nx = instance.setting("ny", int), instance.setting("nx", int)
    row = titin.Boxes([np.s_[ny // 4 : ny // 4 + 1, :nx]])
    temperature = instance.field("temperature", (ny, nx), float, owned=row)
    values, history = np.empty((1, nx)), []
    while instance.reuse():
        # F_INIT
        temperature.receive(values)
        history.append(values[0].copy())
    np.save("history.npy", history)
