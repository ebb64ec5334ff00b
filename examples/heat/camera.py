#!/usr/bin/env python3
"""Takes pictures of the plate: a serial program, which receives the whole field from all ranks."""

import numpy as np
import titin

with titin.Instance(f_init=["temperature"]) as instance:
    ny, nx = instance.setting("ny", int), instance.setting("nx", int)
    every = instance.setting("every", int)
    temperature = instance.field("temperature", (ny, nx), float)
    plate, pictures = np.empty((ny, nx)), []
    while instance.reuse():
        # F_INIT
        temperature.receive(plate)
        pictures.append(plate.copy())
    np.save("pictures.npy", pictures[::every])
