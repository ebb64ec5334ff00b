"""Sends numbers."""

import numpy as np
import titin

with titin.Instance(o_f=["numbers"]) as instance:
    while instance.reuse():
        instance.send("numbers", np.arange(20.0), timestamp=0.0)
