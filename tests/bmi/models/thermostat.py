"""A program of titin's, with fields on its ports: cools a plate of which it gets the temperature.

Ports: ``temperature`` (S) and ``source`` (O_I). All temperatures go to ``kept.npy`` in the work directory.
"""

from __future__ import annotations

import numpy as np
import titin

kept = []
with titin.Instance(o_i=["source"], s=["temperature"]) as instance:
    shape = (6, 7)
    temperature, source = (instance.field(port, shape, float) for port in ("temperature", "source"))
    u = np.zeros(shape)
    while instance.reuse():
        for step in range(6):
            source.send(0.01 * (50.0 - u), timestamp=0.5 * step)
            if temperature.receive(u) is not None:
                kept.append(u.copy())
np.save("kept.npy", np.stack(kept))
