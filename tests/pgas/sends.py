"""Sends 13 by 7 numbers."""

import numpy as np
import titin

with titin.Instance(o_i=["x"]) as instance:
    instance.reuse()
    instance.field("x", (13, 7), float).send(np.zeros((13, 7)), timestamp=0.0)
